/** What is not well of a replica that serves all the same. */
import type { ReplicaView, ShardView } from "@heddle/proto/gen/admin";
import { decodeAttachedState } from "@heddle/proto/attached_state";
import { decodeReplicaState } from "@heddle/proto/replica_state";
import { decodeShardState } from "@heddle/proto/shard_state";
import { reasonText } from "./reason_text.ts";

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

/** What an agent says of a shard that is ready and may hang: how long it has not answered. */
const SUSPECTED = "suspected";

/** The shards of a ready replica that may hang, and are not called so yet. */
export function suspectedShards({ state, shards }: ReplicaView): readonly ShardView[] {
  if (decodeReplicaState(state) !== "ready") return [];
  return shards.filter(({ state, reason }) =>
    decodeShardState(state) === "ready" && reason === SUSPECTED
  );
}

/** Why a replica that counts as well may hang; empty where nothing says so. */
export function suspicion(replica: ReplicaView): string {
  const [first] = suspectedShards(replica);
  return first === undefined || degradation(replica) !== ""
    ? ""
    : `shard ${first.shardId} on ${first.node} may hang: ${first.message}`;
}

/** "ready", "suspected" for what may hang, and "degraded" for what counts as ready while a part of it is not well. */
export function replicaWord(replica: ReplicaView): string {
  const word = decodeReplicaState(replica.state);
  if (word !== "ready") return word;
  return degradation(replica) !== "" ? "degraded" : suspicion(replica) !== "" ? SUSPECTED : word;
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
  const why = reasonText(first.reason, first.message);
  const others = more.length === 0 ? "" : `; and ${more.length} more of its shards`;
  return `shard ${first.shardId} on ${first.node} is ${decodeShardState(first.state)}` +
    `${why === "" ? "" : `: ${why}`}${others}`;
}
