/** Replicas as operators see them. */
import type { ReplicaState } from "@heddle/proto/replica_state";
import { reach } from "../facts/node_state.ts";
import { leader } from "../facts/shard_facts.ts";
import { inFlightOf } from "../facts/work.ts";
import type { EpochMs } from "../ids.ts";
import type { Replica, Shard, World } from "../world.ts";
import type { ReplicaView, ShardView } from "../views.ts";

/** An agent's word for a shard that is ready and may hang. */
const SUSPECTED = "suspected";

/** Every replica, by model and id. */
export function viewReplicas(world: World, now: EpochMs): readonly ReplicaView[] {
  return [...world.replicas.values()]
    .sort((a, b) => compare(a.model, b.model) || compare(a.id, b.id))
    .map((replica) => viewReplica(world, replica, now));
}

/** The replica's state in DESIGN's words, and why it is in it. */
export function replicaState(
  world: World,
  replica: Replica,
  now: EpochMs,
): { readonly state: ReplicaState; readonly reason: string; readonly since: EpochMs } {
  const { failure, stopping, draining, retiring, readyAt } = replica;
  if (failure !== undefined) {
    return { state: "failed", reason: `${failure.reason}: ${failure.message}`, since: failure.at };
  }
  if (stopping !== undefined) {
    return { state: "stopping", reason: stopping.reason, since: stopping.since };
  }
  const away = replica.shards.find((shard) => reach(world, shard.node, now) === "lost");
  if (away !== undefined) {
    const since = world.nodes.get(away.node)?.lastSeenAt ?? world.startedAt;
    return { state: "failed", reason: `node_lost: ${away.node} is lost`, since };
  }
  if (draining !== undefined) {
    return { state: "draining", reason: draining.reason, since: draining.since };
  }
  if (readyAt !== undefined) {
    const reason = retiring === undefined
      ? degradation(replica)
      : `to be replaced: ${retiring.reason}`;
    return { state: "ready", reason, since: readyAt };
  }
  const said = replica.shards.some((shard) => shard.status !== undefined);
  return {
    state: said ? "starting" : "placing",
    reason: leader(replica)?.status?.progress ?? "",
    since: replica.createdAt,
  };
}

/** "degraded" or "suspected" for what counts as ready while a part of it is not well, or may not be. */
export function replicaWord({ state, shards }: Pick<ReplicaView, "state" | "shards">): string {
  if (state !== "ready") return state;
  if (shards.some((shard) => shard.state === "degraded")) return "degraded";
  const doubted = shards.some((shard) => shard.state === "ready" && shard.reason === SUSPECTED);
  return doubted ? SUSPECTED : state;
}

function degradation(replica: Replica): string {
  const bad = replica.shards.find((shard) =>
    shard.status !== undefined && shard.status.state !== "ready"
  );
  if (bad === undefined) return suspected(replica);
  const words = [bad.status?.reason, bad.status?.message].filter((each) => each);
  return `shard ${bad.id} is ${bad.status?.state}${
    words.length > 0 ? `: ${words.join(": ")}` : ""
  }`;
}

/** What its agent says of a shard that serves and may hang; a shard that is well gives no reason. */
function suspected(replica: Replica): string {
  const doubted = replica.shards.find(({ status }) => status?.reason === SUSPECTED);
  const { reason = "", message = "" } = doubted?.status ?? {};
  return doubted === undefined ? "" : `shard ${doubted.id} is ${reason}: ${message}`;
}

function viewReplica(world: World, replica: Replica, now: EpochMs): ReplicaView {
  const { state, reason, since } = replicaState(world, replica, now);
  const lead = leader(replica);
  const inFlight = inFlightOf(world, replica.id, now);
  const anyShard = replica.shards[0];
  const decided = world.decisions.replicas.get(replica.id);
  const order = decided === undefined
    ? ""
    : `${decided.kind.replaceAll("_", " ")} by ${decided.by}: ${
      decided.reason || "no reason given"
    }`;
  return {
    replicaId: replica.id,
    model: replica.model,
    profile: replica.profile,
    state,
    reason: [reason, order].filter((each) => each !== "").join("; "),
    address: lead?.status?.address ?? "",
    shards: replica.shards.map(viewShard),
    inStateMs: Math.max(0, now - since),
    ...(inFlight === undefined ? {} : { inFlight }),
    engine: anyShard?.spec.engine ?? "",
    fabric: anyShard?.spec.fabric ?? "",
  };
}

function viewShard(shard: Shard): ShardView {
  const { status, command } = shard;
  const refusal = command?.answer?.accepted === false ? command.answer : undefined;
  return {
    shardId: shard.id,
    node: shard.node,
    rank: shard.rank,
    state: status?.state ?? "preparing",
    gpus: shard.spec.gpus.map((gpu) => gpu.index),
    hcas: shard.spec.hcas,
    ...(status?.pid === undefined ? {} : { pid: status.pid }),
    reason: status?.reason || (refusal?.reason ?? ""),
    message: status?.message || (refusal?.detail ?? ""),
    logTail: status?.logTail ?? [],
    progress: status?.progress ?? "",
  };
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
