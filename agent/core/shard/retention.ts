/** How long shards that have ended are told of, and their logs kept. */
import { ended, type EpochMs, type Shard } from "./shard.ts";

/** Long enough for somebody to come and look why it ended. */
export const KEEP_ENDED_MS = 30 * 60_000;
/** A model that cannot start must not fill the disk with its tries. */
const KEEP_ENDED_MAX = 32;

/** Ids of the shards that ended long ago, or long before many others. */
export function forgettable(shards: Iterable<Shard>, now: EpochMs): readonly string[] {
  return [...shards].filter(({ state }) => ended(state))
    .sort((a, b) => b.since - a.since)
    .filter(({ since }, index) => now - since >= KEEP_ENDED_MS || index >= KEEP_ENDED_MAX)
    .map(({ spec }) => spec.shardId);
}
