/**
 * A leader that may hang and is not yet called so. Whether it does takes time to know, and operators
 * should not read "All is well" meanwhile: what is not as it should be is told from the first look
 * that shows it, with how long it has been so and when it will be judged.
 */
import { formatDurationMs } from "@heddle/common/duration";
import type { EngineLoad } from "../event.ts";
import type { EpochMs, ShardSpec, StateOf } from "../shard.ts";
import { SUSPECT_MS, thresholdsOf } from "../timing.ts";
import { isBusy, type Stall } from "./stall.ts";

type Ready = StateOf<"ready">;
export type Suspicion = NonNullable<Ready["suspicion"]>;

/** Of a shard that is ready all the same; the one word by which it is known to be suspected. */
export const SUSPECTED = "suspected";

/** Requests that stand still for long enough to be worth a word. */
export function ofStall(stall: Stall | undefined, now: EpochMs): Suspicion | undefined {
  return stall === undefined || now - stall.since < SUSPECT_MS
    ? undefined
    : { what: "stalled", since: stall.since, seenAt: now };
}

/** When a probe that has not come back is to be told of, or told of again. */
export function tellAt({ askedAt, suspicion }: Ready): EpochMs | undefined {
  return askedAt === undefined
    ? undefined
    : Math.max(askedAt, suspicion?.seenAt ?? askedAt) + SUSPECT_MS;
}

/** What there is to tell of a probe that has not come back. */
export function ofSilence(state: Ready & { readonly askedAt: EpochMs }, now: EpochMs): Suspicion {
  return { what: "silent", since: state.suspicion?.since ?? state.askedAt, seenAt: now };
}

/** How long it has been so, and what comes of it when it goes on. */
export function suspicionWords(
  { what, since, seenAt }: Suspicion,
  spec: Pick<ShardSpec, "liveness">,
): string {
  const { hungMs, tokenMs } = thresholdsOf(spec);
  const [told, limit] = [formatDurationMs(seenAt - since), what === "stalled" ? hungMs : tokenMs];
  const judged = `it is called hung at ${formatDurationMs(limit)}`;
  switch (what) {
    case "stalled":
      return `requests run and none of its counters of work has moved for ${told}; ${judged}`;
    case "silent":
      return `not answering for ${told}; ${judged}`;
    case "failed":
      return `not answering for ${told}; it is degraded when the next try fails too`;
    default:
      return what satisfies never;
  }
}

/** What an engine that gave no token was found to be, by its own numbers before and after it was asked. */
export type Silence =
  /** Nothing else ran, and no counter moved: nothing can excuse it. */
  | "hangs"
  /** Requests of others run or wait by now, and none of its counters moved either. */
  | "stands_still"
  /** It worked on something, or its numbers cannot be read. */
  | "unknown";

export function silenceOf(before: EngineLoad | undefined, after: EngineLoad | undefined): Silence {
  if (before?.running === undefined || after?.running === undefined) return "unknown";
  if (isBusy(before) || before.progress === undefined) return "unknown";
  if (before.progress !== after.progress) return "unknown";
  // One may be the request of the probe itself.
  return after.running + (after.waiting ?? 0) > 1 ? "stands_still" : "hangs";
}
