/** What can be said of a shard or a replica from its own facts. */
import type { Replica, Shard } from "../world.ts";

/**
 * The shard may hold GPUs and ports. An agent says `stopped` or `failed` only when nothing of it runs
 * any more; until then, also while it stops, what it was given is not free.
 */
export function holds(shard: Shard): boolean {
  return !ended(shard);
}

/** Nothing of it runs, as its node says. */
export function ended(shard: Shard): boolean {
  const state = shard.status?.state;
  return state === "stopped" || state === "failed";
}

/** It answers, well or badly. */
export function serving(shard: Shard): boolean {
  const state = shard.status?.state;
  return state === "ready" || state === "degraded";
}

/** Rank 0, the only one that serves HTTP; absent while an adopted replica fills up. */
export function leader(replica: Replica): Shard | undefined {
  return replica.shards.find((shard) => shard.rank === 0);
}

export function whole(replica: Replica): boolean {
  return replica.shards.length === replica.shardCount;
}

/** On its way out: no decision brings it back. */
export function ending(replica: Replica): boolean {
  return replica.failure !== undefined || replica.stopping !== undefined;
}
