/**
 * What control remembers of starts that failed, also over its own restarts: how many, and what must
 * not be tried again until something changes. The rest of a model's record is learnt again.
 */
import { type BackoffBounds, backoffMs } from "@heddle/common/backoff";
import type { EpochMs, NodeId } from "../ids.ts";

export interface Failures {
  /** Starts that failed since the last success. */
  readonly failedStarts: number;
  /** What the last failure said; absent after a success. */
  readonly lastFailure?: string;
  /** Profiles that must not be tried again until their circumstances change. */
  readonly blocked: readonly BlockedProfile[];
}

export interface BlockedProfile {
  readonly profile: string;
  /** The only node it must not be tried on; absent: nowhere, for the failure is the profile's own. */
  readonly node?: NodeId;
  /** The agent's word for that node's failure. */
  readonly reason?: string;
  readonly message: string;
  /** Of the profile as it failed. */
  readonly fingerprint: string;
  /** What nodes had told that it depends on; see circumstance.ts. */
  readonly told: readonly Told[];
}

/** One thing that a node told of itself. */
export interface Told {
  /** Absent where it is the same whichever node tells it. */
  readonly node?: NodeId;
  readonly what: string;
}

/** What is stored of a model; without `failures`, nothing. */
export interface FailuresRecord {
  readonly kind: "failures";
  readonly model: string;
  readonly failures?: Failures;
}

type Models = ReadonlyMap<string, Failures>;

/** What has to be stored so that a store which has `before` has `after`. Sorted by model. */
export function failureRecords(before: Models, after: Models): readonly FailuresRecord[] {
  if (before === after) return [];
  const gone = [...before.keys()].filter((model) => !after.has(model));
  const changed = [...after.keys(), ...gone]
    .filter((model) => !same(before.get(model), after.get(model)));
  return changed.sort().map((model) => {
    const failures = after.get(model);
    return {
      kind: "failures",
      model,
      ...(failures === undefined || clean(failures) ? {} : { failures: stored(failures) }),
    };
  });
}

/**
 * The record that a new control begins with. The time of another process says nothing here, so that
 * the wait for the next start begins anew: it never comes too early, and at most one wait too late.
 */
export function rememberedRecord(
  model: string,
  failures: Failures,
  { bounds, now }: { readonly bounds: BackoffBounds; readonly now: EpochMs },
): Failures & { readonly backoffUntil?: EpochMs } {
  const { failedStarts } = failures;
  return failedStarts === 0
    ? failures
    : { ...failures, backoffUntil: now + backoffMs(model, failedStarts, bounds) };
}

function same(before: Failures | undefined, after: Failures | undefined): boolean {
  if (before === undefined || clean(before)) return after === undefined || clean(after);
  return after !== undefined && before.failedStarts === after.failedStarts &&
    before.lastFailure === after.lastFailure && before.blocked === after.blocked;
}

function clean({ failedStarts, blocked }: Failures): boolean {
  return failedStarts === 0 && blocked.length === 0;
}

/** Without what else a record has. */
function stored({ failedStarts, lastFailure, blocked }: Failures): Failures {
  return { failedStarts, ...(lastFailure === undefined ? {} : { lastFailure }), blocked };
}
