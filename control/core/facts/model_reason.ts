/** Why a model is not as it should be, in words. No times in it: it is published when it changes. */
import type { Model } from "../catalog.ts";
import type { EpochMs } from "../ids.ts";
import type { ModelRecord, Replica, World } from "../world.ts";
import { failedOn, whatHelps } from "./circumstance.ts";
import { desired } from "./desired.ts";
import { settled } from "./settled.ts";
import { ending } from "./shard_facts.ts";

/** Why no replica of the model takes requests. Never empty. */
export function modelReason(world: World, model: Model, now: EpochMs): string {
  const replicas = [...world.replicas.values()].filter((each) => each.model === model.name)
    .sort((a, b) => (a.id < b.id ? -1 : 1));
  const starting = replicas.find((each) => !ending(each) && each.readyAt === undefined);
  if (starting !== undefined) return `starting on ${nodesOf(starting)}`;
  const paused = world.decisions.paused.get(model.name);
  if (paused !== undefined) return `paused by ${paused.by}: ${paused.reason || "no reason given"}`;
  const wanted = desired(world, model, 0, now);
  if (wanted.reason === "override" && wanted.count === 0) return "scaled to 0 by an operator";
  if (model.profiles.length === 0) return "no attached engine serves it";
  if (wanted.reason === "asleep") return "asleep until it is asked for";
  if (!settled(world, now)) return "control has just started and waits for its nodes";
  return failureReason(world, model) ?? replicas.map(leavingReason).find((each) => each !== "") ??
    "about to be placed";
}

function failureReason(world: World, model: Model): string | undefined {
  const record = world.models.get(model.name);
  if (record === undefined) return undefined;
  const everywhere = record.blocked.filter(({ node }) => node === undefined);
  const [blocked] = everywhere;
  if (blocked !== undefined && everywhere.length >= model.profiles.length) {
    return `cannot start: ${blocked.message}; ${whatHelps(blocked, model.name)}`;
  }
  const elsewhere = record.noRoom === undefined ? undefined : failedNode(world, model, record);
  if (elsewhere !== undefined) return `${record.noRoom}; ${elsewhere}`;
  if (record.failedStarts > 0) {
    return `${failedStarts(record)}; ${record.lastFailure ?? "cause unknown"}`;
  }
  return record.noRoom;
}

/** "1 failed start", "3 failed starts". */
export function failedStarts({ failedStarts: count }: Pick<ModelRecord, "failedStarts">): string {
  return `${count} failed start${count === 1 ? "" : "s"}`;
}

/** Of nodes where it failed for good, the first: with no room on others, that is what to mend. */
function failedNode(world: World, model: Model, record: ModelRecord): string | undefined {
  for (const profile of model.profiles) {
    const [first] = failedOn(world, record, { model, profile });
    if (first === undefined) continue;
    const [node, message] = first;
    return `cannot start on ${node}: ${message}; ${whatHelps({ node }, model.name)}`;
  }
  return undefined;
}

function leavingReason(replica: Replica): string {
  if (replica.failure !== undefined) return replica.failure.message;
  if (replica.stopping !== undefined) return `stopping on ${nodesOf(replica)}`;
  if (replica.draining !== undefined) return `draining on ${nodesOf(replica)}`;
  return "";
}

function nodesOf(replica: Replica): string {
  return replica.shards.map((shard) => shard.node).join(", ");
}
