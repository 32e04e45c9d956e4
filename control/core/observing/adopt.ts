/**
 * Takes over what a node runs and this world does not know. The shards of one replica come from
 * several nodes, one by one, and make it whole again.
 */
import type { Plain } from "@heddle/proto/plain";
import type { ShardReport, ShardSpec } from "@heddle/proto/gen/types";
import { ended } from "../facts/shard_facts.ts";
import type { EpochMs, NodeId } from "../ids.ts";
import { withEntry } from "./layered_map.ts";
import type { Replica, Shard, World } from "../world.ts";
import { observedShard, strayId, withReplica } from "./shards.ts";

/** The world with the reported shard in it; the same when it was there. */
export function adopt(
  world: World,
  node: NodeId,
  report: Plain<ShardReport>,
  now: EpochMs,
): World {
  const { spec, status } = report;
  if (spec === undefined || spec.shardId === "" || spec.replicaId === "") return world;
  const shard: Shard = {
    id: spec.shardId,
    node,
    rank: spec.rank,
    spec,
    ...(status === undefined ? {} : { status: observedShard(status, undefined, now) }),
  };
  const replica = world.replicas.get(spec.replicaId);
  if (replica === undefined) {
    // Agents remember for a while what has ended; that is history, and nothing of it runs.
    return ended(shard) ? world : withReplica(world, goingOn(found(shard, now), shard, now), now);
  }
  const there = replica.shards.find((each) => each.id === shard.id || each.rank === shard.rank);
  if (there === undefined) {
    const shards = [...replica.shards, shard].sort((a, b) => a.rank - b.rank);
    return withReplica(world, goingOn({ ...replica, shards }, shard, now), now);
  }
  return there.node === node || ended(shard) ? world : stray(world, shard, there.node, now);
}

/** What an earlier control had begun to stop is stopped to the end. */
function goingOn(replica: Replica, shard: Shard, now: EpochMs): Replica {
  const state = shard.status?.state;
  if (state !== "stopping" && state !== "draining") return replica;
  return { ...replica, stopping: replica.stopping ?? { reason: "drained", since: now } };
}

function found(shard: Shard, now: EpochMs): Replica {
  const { spec } = shard;
  return {
    id: spec.replicaId,
    model: spec.model,
    profile: spec.profile,
    fingerprint: spec.fingerprint,
    shardCount: Math.max(1, spec.shardCount),
    shards: [shard],
    createdAt: now,
    readyDeadline: now + startupMs(spec),
    adopted: true,
    scores: {},
    notes: [],
  };
}

/** How long a found engine may take to become ready when its spec does not say. */
const STARTUP_MS = 1_200_000;

function startupMs(spec: Plain<ShardSpec>): number {
  return spec.startupTimeoutMs > 0 ? spec.startupTimeoutMs : STARTUP_MS;
}

/**
 * The same shard on two nodes, as after a disk was copied. The second one is held apart, with what
 * it occupies, and has failed: it is stopped, and the first one is left alone.
 */
function stray(world: World, shard: Shard, elsewhere: NodeId, now: EpochMs): World {
  const id = strayId(shard.spec.replicaId, shard.node);
  if (world.replicas.has(id)) return world;
  const replica: Replica = {
    ...found(shard, now),
    id,
    failure: {
      reason: "partial",
      message: `shard ${shard.id} is on ${elsewhere} too`,
      at: now,
      permanent: false,
      logTail: [],
    },
  };
  return { ...world, replicas: withEntry(world.replicas, id, replica) };
}
