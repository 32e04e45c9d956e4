/** An agent says how a shard is. */
import type { ShardStatusSeen } from "../event.ts";
import type { EpochMs, NodeId } from "../ids.ts";
import { withEntry } from "./layered_map.ts";
import type { ObservedShard, Replica, World } from "../world.ts";
import { findShard, observedShard, seen, withShard } from "./shards.ts";

/** The agent's word for a port that something else listens on. */
const PORT_IN_USE = "port_in_use";
/** The agent's word for a shard that waits for weights, which may take hours. */
const FETCHING_WEIGHTS = "fetching_weights";

export function observeShardStatus(world: World, event: ShardStatusSeen, now: EpochMs): World {
  const { node, status } = event;
  const alive = seen(world, node, now);
  const found = findShard(alive, node, status.shardId, status.replicaId);
  if (found === undefined) return alive;
  const { replica, shard } = found;
  const observed = observedShard(status, shard.status, now);
  const noted = observed.reason === PORT_IN_USE
    ? withForeignPort(alive, node, shard.spec.portFirst, now)
    : alive;
  return withShard(noted, waiting(replica, observed, now), { ...shard, status: observed }, now);
}

/** The time to become ready begins when the weights are there; until then it begins again. */
function waiting(replica: Replica, observed: ObservedShard, now: EpochMs): Replica {
  if (observed.state !== "preparing" || observed.reason !== FETCHING_WEIGHTS) return replica;
  const startupMs = replica.shards[0]?.spec.startupTimeoutMs ?? 0;
  return { ...replica, readyDeadline: Math.max(replica.readyDeadline, now + startupMs) };
}

/** What is not ours on a port goes on being there: the next shard is to try other ports. */
function withForeignPort(world: World, name: NodeId, first: number, now: EpochMs): World {
  const node = world.nodes.get(name);
  if (node === undefined) return world;
  const foreignPorts = new Map(node.foreignPorts).set(first, now);
  return { ...world, nodes: withEntry(world.nodes, name, { ...node, foreignPorts }) };
}
