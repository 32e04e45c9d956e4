/** What is not well of a replica that serves all the same. */
import type { ReplicaView, ShardView } from "@heddle/proto/gen/admin";
import { decodeAttachedState } from "@heddle/proto/attached_state";
import { decodeReplicaState } from "@heddle/proto/replica_state";
import { decodeShardState } from "@heddle/proto/shard_state";

/** Shards that a control which was just restarted has not heard of yet are "preparing": no trouble. */
const WELL: ReadonlySet<string> = new Set(["ready", "preparing", "unknown"]);

/**
 * The shards of a replica that counts as ready and are not: their engine hangs, answers without a
 * token, or lost a link. Empty when all is well, and for what does not serve.
 */
export function degradedShards({ state, shards }: ReplicaView): readonly ShardView[] {
  if (decodeReplicaState(state) !== "ready") return [];
  return shards.filter((shard) => !WELL.has(decodeShardState(shard.state)));
}

/** "ready", and "degraded" for what counts as ready while a part of it is not well. */
export function replicaWord(replica: ReplicaView): string {
  const word = decodeReplicaState(replica.state);
  return degradation(replica) === "" || word !== "ready" ? word : "degraded";
}

/** Why a ready replica is not well, in words; empty when it is, and for what does not serve. */
export function degradation(replica: ReplicaView): string {
  const { attached, reason } = replica;
  if (attached !== undefined) {
    if (decodeReplicaState(replica.state) !== "ready") return "";
    const degraded = decodeAttachedState(attached.state) === "degraded";
    return reason === "" && degraded ? "its agent says so" : reason;
  }
  const [first, ...more] = degradedShards(replica);
  if (first === undefined) return "";
  const why = [first.reason, first.message].filter((text) => text !== "").join(": ");
  const others = more.length === 0 ? "" : `; and ${more.length} more of its shards`;
  return `shard ${first.shardId} on ${first.node} is ${decodeShardState(first.state)}` +
    `${why === "" ? "" : `: ${why}`}${others}`;
}
