/** Takes retiring replicas out of service once they are not missed, and ends drains that are done. */
import { formatDurationMs } from "@heddle/common/duration";
import type { Model } from "../catalog.ts";
import type { EpochMs } from "../ids.ts";
import type { Replica, RetireReason, Retiring } from "../world.ts";
import { drainEnd } from "./drain_end.ts";
import { act, type Pass, wait, wakeAt } from "./pass.ts";
import { away } from "../facts/replica_judgement.ts";
import { fitsWithout, type Tried } from "./room.ts";
import { ending } from "../facts/shard_facts.ts";
import { workOf } from "../facts/work.ts";

interface Want {
  readonly ids: readonly string[];
  readonly count: number;
  /** Why a replacement could not be started in this pass; absent when nothing was missing. */
  readonly tried: Tried | undefined;
}

type Verdict =
  | { readonly kind: "drain"; readonly detail: string }
  | { readonly kind: "wait"; readonly detail: string; readonly until?: EpochMs };

/** Begins drains of one model's replicas. */
export function drainRetiring(pass: Pass, model: Model | undefined, want: Want): void {
  for (const replica of leastMissedFirst(pass, want.ids)) {
    if (replica.retiring === undefined || replica.draining !== undefined) continue;
    const verdict = verdictOn(pass, model, replica, replica.retiring, want);
    if (verdict.kind === "drain") {
      drain(pass, replica, replica.retiring.reason, verdict.detail);
    } else {
      wait(pass, {
        subject: "replica",
        id: replica.id,
        why: "replacement",
        detail: verdict.detail,
        ...(verdict.until === undefined ? {} : { until: verdict.until }),
      });
    }
  }
}

/** Takes out of service what operators want stopped, whatever becomes of its model. */
export function drainStopped(pass: Pass, ids: readonly string[]): void {
  for (const replica of leastMissedFirst(pass, ids)) {
    const decided = pass.world.decisions.replicas.get(replica.id)?.kind;
    if (replica.draining !== undefined || decided === undefined || decided === "restart") continue;
    act(pass, { kind: "retire_replica", replica: replica.id, reason: "operator_stop" });
    drain(pass, replica, "operator_stop", "");
  }
}

function drain(pass: Pass, { id }: Replica, reason: RetireReason, detail: string): void {
  const deadline = pass.now + pass.world.timings.drainGraceMs;
  act(pass, { kind: "drain_replica", replica: id, reason, deadline, detail });
  // It counts no more, so that the next pass may start what this one had no place for.
  wakeAt(pass, pass.now + 1);
}

/** Stops the draining replicas that nobody uses any more. */
export function endDrains(pass: Pass, ids: readonly string[]): void {
  for (const id of ids) endDrain(pass, id);
}

function leastMissedFirst(pass: Pass, ids: readonly string[]): readonly Replica[] {
  // A node that is being emptied goes before a profile that is being renewed.
  const rank = (replica: Replica) => replica.retiring?.reason === "profile_changed" ? 1 : 0;
  return ids.flatMap((id) => pass.draft.replicas.get(id) ?? [])
    .filter((each) => !ending(each) && !away(pass.world, each, pass.now))
    .sort((a, b) =>
      rank(a) - rank(b) ||
      (workOf(pass.world, a, pass.now) ?? 0) - (workOf(pass.world, b, pass.now) ?? 0) ||
      (a.id < b.id ? -1 : 1)
    );
}

function verdictOn(
  pass: Pass,
  model: Model | undefined,
  replica: Replica,
  retiring: Retiring,
  want: Want,
): Verdict {
  switch (retiring.reason) {
    case "model_removed":
    case "operator_stop":
    case "surplus":
    case "rebuilt_elsewhere":
      return { kind: "drain", detail: "" };
    case "node_draining":
    case "operator_restart":
    case "profile_changed":
      break;
  }
  if (model === undefined || replica.readyAt === undefined || spare(pass, want)) {
    return { kind: "drain", detail: "" };
  }
  return retiring.reason === "node_draining"
    ? nodeVerdict(pass, retiring, want)
    : renewalVerdict(pass, model, replica, want);
}

/** More serve, or could, than are wanted. */
function spare(pass: Pass, want: Want): boolean {
  const serving = want.ids.flatMap((id) => pass.draft.replicas.get(id) ?? []).filter((each) =>
    each.readyAt !== undefined && each.draining === undefined && !ending(each) &&
    !away(pass.world, each, pass.now)
  );
  return serving.length > want.count;
}

/** An operator wants the node empty: a replacement is waited for, but not for ever. */
function nodeVerdict(pass: Pass, retiring: Retiring, { tried }: Want): Verdict {
  const { drainGraceMs } = pass.world.timings;
  const until = retiring.since + drainGraceMs;
  if (tried?.kind === "no_room") {
    return { kind: "drain", detail: `no room for a second copy: ${tried.detail}` };
  }
  if (pass.now >= until) {
    return {
      kind: "drain",
      detail: `no replacement was ready within ${formatDurationMs(drainGraceMs)}`,
    };
  }
  return { kind: "wait", detail: "until its replacement is ready", until };
}

/**
 * A new profile, or a new engine for the same: the old one serves until the new one does. It makes
 * room only where a new one would then fit, one at a time, and never for what fails to start.
 */
function renewalVerdict(pass: Pass, model: Model, replica: Replica, want: Want): Verdict {
  const { tried } = want;
  const what = replica.retiring?.reason === "profile_changed"
    ? "the changed profile"
    : "a new engine";
  if (tried?.kind === "no_room") {
    const record = pass.draft.models.get(model.name);
    const others = want.ids.flatMap((id) => pass.draft.replicas.get(id) ?? []).filter((each) =>
      each.id !== replica.id &&
      (each.draining !== undefined || each.stopping !== undefined ||
        (each.readyAt === undefined && !ending(each)))
    );
    if (others.length > 0) return { kind: "wait", detail: "one is replaced at a time" };
    if ((record?.failedStarts ?? 0) > 0) {
      return { kind: "wait", detail: `${what} has failed to start` };
    }
    return fitsWithout(pass, model, replica)
      ? { kind: "drain", detail: `no room for a second copy, so it makes room: ${tried.detail}` }
      : { kind: "wait", detail: `${what} would not fit in its place: ${tried.detail}` };
  }
  if (tried?.kind === "backoff" || tried?.kind === "blocked") {
    return { kind: "wait", detail: `${what} does not start: ${tried.detail}` };
  }
  return { kind: "wait", detail: "until its replacement is ready" };
}

function endDrain(pass: Pass, id: string): void {
  const replica = pass.draft.replicas.get(id);
  if (replica?.draining === undefined || ending(replica)) return;
  if (away(pass.world, replica, pass.now)) return;
  const atOnce = pass.world.decisions.replicas.get(id)?.kind === "stop_at_once";
  const draining = atOnce ? { ...replica.draining, deadline: pass.now } : replica.draining;
  const end = drainEnd(pass.world, replica, draining, pass.now);
  if (end.kind === "end") {
    const reason = atOnce || replica.readyAt === undefined ? draining.reason : end.reason;
    act(pass, { kind: "stop_replica", replica: id, reason });
    return;
  }
  wait(pass, {
    subject: "replica",
    id,
    why: "requests_in_flight",
    detail: end.detail,
    until: end.until,
  });
}
