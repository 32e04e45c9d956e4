/** Finding and changing one shard of the world. */
import { decodeRevision } from "@heddle/proto/revision";
import { decodeShardState } from "@heddle/proto/shard_state";
import type { Plain } from "@heddle/proto/plain";
import type { ShardStatus } from "@heddle/proto/gen/types";
import { leader, serving, whole } from "../facts/shard_facts.ts";
import type { EpochMs, NodeId, ShardId } from "../ids.ts";
import { withEntry } from "./layered_map.ts";
import type { Node, ObservedShard, Replica, Shard, World } from "../world.ts";

/** The shard of that id on that node: an agent speaks only for its own. */
export function findShard(
  world: World,
  node: NodeId,
  id: ShardId,
  replicaId: string,
): { readonly replica: Replica; readonly shard: Shard } | undefined {
  const likely = world.replicas.get(replicaId);
  const there = likely === undefined ? undefined : shardOf(likely, node, id);
  if (there !== undefined) return there;
  // A second copy of a shard is held under a name of its own; see adopt.ts.
  const apart = world.replicas.get(strayId(replicaId, node));
  const found = apart === undefined ? undefined : shardOf(apart, node, id);
  if (found !== undefined || replicaId !== "") return found;
  for (const replica of world.replicas.values()) {
    const shard = shardOf(replica, node, id);
    if (shard !== undefined) return shard;
  }
  return undefined;
}

/** The name under which a replica's second copy on `node` is held. */
export function strayId(replicaId: string, node: NodeId): string {
  return `${replicaId}@${node}`;
}

function shardOf(replica: Replica, node: NodeId, id: ShardId) {
  const shard = replica.shards.find((each) => each.id === id && each.node === node);
  return shard === undefined ? undefined : { replica, shard };
}

/** The world with one shard changed, and with what follows for its replica and model. */
export function withShard(world: World, replica: Replica, shard: Shard, now: EpochMs): World {
  const shards = replica.shards.map((each) =>
    each.id === shard.id && each.node === shard.node ? shard : each
  );
  return withReplica(world, { ...replica, shards }, now);
}

/** Stores a replica. Its first readiness is noted, and clears the backoff of its model. */
export function withReplica(world: World, replica: Replica, now: EpochMs): World {
  const first = replica.readyAt === undefined && answers(replica);
  const stored = first ? { ...replica, readyAt: now } : replica;
  const next = { ...world, replicas: withEntry(world.replicas, stored.id, stored) };
  return first ? clearedBackoff(next, stored.model) : next;
}

/** Whole, and its leader answers. Workers serve no HTTP; a leader cannot answer without them. */
function answers(replica: Replica): boolean {
  const lead = leader(replica);
  return whole(replica) && lead !== undefined && serving(lead);
}

function clearedBackoff(world: World, model: string): World {
  const record = world.models.get(model);
  if (record === undefined || record.failedStarts === 0) return world;
  const { backoffUntil: _until, lastFailure: _failure, ...rest } = record;
  return { ...world, models: new Map(world.models).set(model, { ...rest, failedStarts: 0 }) };
}

/** A status as the world keeps it. `before` lends what an agent leaves out: key, address, load. */
export function observedShard(
  status: Plain<ShardStatus>,
  before: ObservedShard | undefined,
  now: EpochMs,
): ObservedShard {
  const load = status.runningRequests === undefined || status.waitingRequests === undefined
    ? before?.load
    : { running: status.runningRequests, waiting: status.waitingRequests, at: now };
  return {
    state: decodeShardState(status.state),
    revision: decodeRevision(status.revision),
    attempt: status.attempt,
    reason: status.reason,
    message: status.message,
    permanent: status.permanent,
    ...(status.pid === undefined ? {} : { pid: status.pid }),
    address: status.address || (before?.address ?? ""),
    apiKey: status.apiKey || (before?.apiKey ?? ""),
    ...(status.exit === undefined ? {} : { exit: status.exit }),
    logTail: status.logTail,
    since: now - Number(status.inStateMs),
    ...(load === undefined ? {} : { load }),
    ...(status.maxModelLen === undefined ? {} : { maxModelLen: status.maxModelLen }),
    progress: status.progress,
  };
}

/** Any message is a sign of life. */
export function seen(world: World, name: NodeId, now: EpochMs): World {
  const node = world.nodes.get(name);
  if (node === undefined || node.lastSeenAt >= now) return world;
  const next: Node = { ...node, lastSeenAt: now };
  return { ...world, nodes: withEntry(world.nodes, name, next) };
}
