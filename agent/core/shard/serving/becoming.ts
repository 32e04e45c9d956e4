/** What a shard whose processes run may become while they do. */
import type { Effect } from "../event.ts";
import type { EpochMs, Shard, ShardState, StateOf } from "../shard.ts";
import { PROBE_DEGRADED_MS, PROBE_READY_MS } from "../timing.ts";

export interface Step {
  readonly shard: Shard;
  readonly effects: readonly Effect[];
}

export type Serving =
  | StateOf<"loading">
  | StateOf<"ready">
  | StateOf<"degraded">
  | StateOf<"draining">;

/** Words for what is not as it should be. */
export interface Words {
  readonly reason: string;
  readonly message: string;
}

export function keep(shard: Shard): Step {
  return { shard, effects: [] };
}

/** The shard in `state`; how long it has been in it goes on where the kind is the same. */
export function become(shard: Shard, state: ShardState, now: EpochMs): Step {
  const since = state.kind === shard.state.kind ? shard.since : now;
  return { shard: { ...shard, since, state }, effects: [] };
}

export function readyState(
  processes: StateOf<"ready">["processes"],
  maxModelLen: number | undefined,
  now: EpochMs,
): StateOf<"ready"> {
  return {
    kind: "ready",
    processes,
    nextProbeAt: now + PROBE_READY_MS,
    failedProbes: 0,
    ...(maxModelLen === undefined ? {} : { maxModelLen }),
  };
}

/** Degraded for what `why` says; a fault of its links that was known stays known. */
export function degrade(
  shard: Shard,
  state: StateOf<"ready"> | StateOf<"degraded">,
  why: Words & { readonly hungSince?: EpochMs; readonly linkFault?: Words },
  now: EpochMs,
): Step {
  const { processes, maxModelLen, stall } = state;
  const { reason, message, hungSince } = why;
  const linkFault = why.linkFault ?? ("linkFault" in state ? state.linkFault : undefined);
  const watched = hungSince !== undefined || linkFault !== undefined;
  return become(shard, {
    kind: "degraded",
    processes,
    nextProbeAt: now + PROBE_DEGRADED_MS,
    reason,
    message,
    ...(hungSince === undefined ? {} : { hungSince }),
    ...(stall === undefined || !watched ? {} : { stall }),
    ...(linkFault === undefined ? {} : { linkFault: { ...linkFault } }),
    ...(maxModelLen === undefined ? {} : { maxModelLen }),
  }, now);
}
