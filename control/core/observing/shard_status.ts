/** An agent says how a shard is. */
import type { ShardStatusSeen } from "../event.ts";
import type { EpochMs } from "../ids.ts";
import type { World } from "../world.ts";
import { findShard, observedShard, seen, withShard } from "./shards.ts";

export function observeShardStatus(world: World, event: ShardStatusSeen, now: EpochMs): World {
  const { node, status } = event;
  const alive = seen(world, node, now);
  const found = findShard(alive, node, status.shardId, status.replicaId);
  if (found === undefined) return alive;
  const { replica, shard } = found;
  const observed = observedShard(status, shard.status, now);
  return withShard(alive, replica, { ...shard, status: observed }, now);
}
