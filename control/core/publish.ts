/**
 * What routers are told, from the world. An endpoint is there from its first readiness until its
 * replica is stopped, failed or lost; what is only unreachable, or not heard of yet, stays. A lost
 * one stays too, to be asked last, while its model has fewer than are wanted: its node may be cut
 * off from control alone, and nobody is served by dropping it.
 */
import type { Plain } from "@heddle/proto/plain";
import type { Endpoint, Model as WireModel } from "@heddle/proto/gen/router";
import { parseDurationMs } from "@heddle/common/duration";
import { attachedEndpoints, attachedRemoval, attachedSettled } from "./attach/publication.ts";
import { findModel, type Model } from "./catalog.ts";
import { profileOf } from "./catalog/fingerprint.ts";
import { desired } from "./facts/desired.ts";
import { modelReason } from "./facts/model_reason.ts";
import { reach } from "./facts/node_state.ts";
import { settled } from "./facts/settled.ts";
import { ending, leader, serving } from "./facts/shard_facts.ts";
import type { EpochMs, NodeId, ReplicaId } from "./ids.ts";
import type { Published, RemovalReason } from "./published.ts";
import type { Replica, Shard, World } from "./world.ts";

/**
 * The world with its newest publication; the same world when routers have nothing to learn. A new
 * publication has a new revision, and replicas that drain in it remember that.
 */
export function publish(world: World, now: EpochMs): World {
  const before = world.published;
  const sure = endpointsOf(world, now);
  const attached = new Map(
    [...attachedEndpoints(world, now)].map(([id, each]) => [id, asBefore(world, each)]),
  );
  const endpoints = new Map([...withMissed(world, sure, now), ...attached]);
  const content = {
    models: modelsOf(world, [...sure.values(), ...attached.values()], now),
    endpoints,
    removed: removedOf(world, endpoints, now),
    settledNodes: settledNodes(world, now),
    settled: settled(world, now) && attachedSettled(world, now),
  };
  const unsaid = [...world.replicas.values()].filter((replica) =>
    replica.draining !== undefined && replica.draining.publishedAs === undefined
  );
  // In a new term everything is said again: routers may follow a control that was before.
  const same = before.revision.term === world.term && sameMap(before.models, content.models) &&
    sameMap(before.endpoints, content.endpoints) && sameMap(before.removed, content.removed) &&
    sameValue(before.settledNodes, content.settledNodes) && before.settled === content.settled;
  if (same && unsaid.length === 0) return world;
  const revision = { term: world.term, sequence: world.sequence + 1 };
  const published: Published = same ? before : { revision, ...content };
  const replicas = new Map(world.replicas);
  for (const replica of unsaid) {
    if (replica.draining === undefined) continue;
    const draining = { ...replica.draining, publishedAs: published.revision };
    replicas.set(replica.id, { ...replica, draining });
  }
  return {
    ...world,
    sequence: same ? world.sequence : revision.sequence,
    published,
    replicas: unsaid.length === 0 ? world.replicas : replicas,
  };
}

function endpointsOf(world: World, now: EpochMs): ReadonlyMap<ReplicaId, Plain<Endpoint>> {
  const endpoints = new Map<ReplicaId, Plain<Endpoint>>();
  for (const id of [...world.replicas.keys()].sort()) {
    const replica = world.replicas.get(id);
    if (replica === undefined || removalOf(world, replica, now) !== undefined) continue;
    const endpoint = endpointOf(world, replica);
    if (endpoint !== undefined) endpoints.set(id, asBefore(world, endpoint));
  }
  return endpoints;
}

/** The endpoints with those on lost nodes whose replacement is not there yet. */
function withMissed(
  world: World,
  sure: ReadonlyMap<ReplicaId, Plain<Endpoint>>,
  now: EpochMs,
): ReadonlyMap<ReplicaId, Plain<Endpoint>> {
  const lost = [...world.replicas.values()].filter((replica) =>
    !ending(replica) && replica.draining === undefined && removalOf(world, replica, now) === "lost"
  ).sort((a, b) => (a.id < b.id ? -1 : 1));
  if (lost.length === 0) return sure;
  const endpoints = new Map(sure);
  const serving = new Map<string, number>();
  for (const { model, draining } of sure.values()) {
    if (!draining) serving.set(model, (serving.get(model) ?? 0) + 1);
  }
  for (const replica of lost) {
    const model = findModel(world.catalog.catalog, replica.model);
    const endpoint = endpointOf(world, replica);
    if (model === undefined || endpoint === undefined) continue;
    const count = (serving.get(model.name) ?? 0) + 1;
    if (count > desired(world, model, count, now).count) continue;
    serving.set(model.name, count);
    endpoints.set(replica.id, asBefore(world, { ...endpoint, degraded: true }));
  }
  return endpoints;
}

/** The very object of the publication before, when it says the same. */
function asBefore(world: World, endpoint: Plain<Endpoint>): Plain<Endpoint> {
  const before = world.published.endpoints.get(endpoint.replicaId);
  return before !== undefined && sameValue(before, endpoint) ? before : endpoint;
}

function endpointOf(world: World, replica: Replica): Plain<Endpoint> | undefined {
  const lead = leader(replica);
  const status = lead?.status;
  if (lead === undefined || status === undefined || status.address === "") return undefined;
  // One that was found serving counts before its other nodes have registered.
  if (replica.readyAt === undefined && !(replica.adopted && serving(lead))) return undefined;
  const model = findModel(world.catalog.catalog, replica.model);
  const profile = model === undefined ? undefined : profileOf(model, replica.fingerprint);
  const before = world.published.endpoints.get(replica.id);
  return {
    replicaId: replica.id,
    model: replica.model,
    address: status.address,
    node: lead.node,
    engine: lead.spec.engine,
    profile: profile?.name ?? replica.profile,
    servedName: lead.spec.model,
    apiKey: status.apiKey,
    weight: profile?.weight ?? before?.weight ?? 1,
    priority: profile?.priority ?? before?.priority ?? 0,
    draining: replica.draining !== undefined,
    pool: poolOf(lead, profile?.gpu_class),
    gpus: replica.shards.reduce((sum, shard) => sum + shard.spec.gpus.length, 0),
    degraded: replica.shards.some((shard) => shard.status?.state === "degraded"),
    ...(status.maxModelLen === undefined ? {} : { maxModelLen: status.maxModelLen }),
  };
}

// A node without a fabric is its own island.
function poolOf({ spec, node }: Shard, gpuClass = "no-gpu"): string {
  return `${spec.fabric === "" ? node : spec.fabric}/${gpuClass}`;
}

/** Why a replica is no endpoint for good; undefined while it is one, or may become one. */
function removalOf(world: World, replica: Replica, now: EpochMs): RemovalReason | undefined {
  if (replica.failure !== undefined) {
    return replica.failure.reason === "node_lost" ? "lost" : "failed";
  }
  if (replica.stopping !== undefined) return "stopped";
  const lost = replica.shards.some((shard) => reach(world, shard.node, now) === "lost");
  return lost ? "lost" : undefined;
}

function removedOf(
  world: World,
  endpoints: ReadonlyMap<ReplicaId, unknown>,
  now: EpochMs,
): ReadonlyMap<ReplicaId, RemovalReason> {
  const removed = new Map<ReplicaId, RemovalReason>();
  for (const id of [...world.replicas.keys()].sort()) {
    const replica = world.replicas.get(id);
    if (replica === undefined || endpoints.has(id)) continue;
    const reason = removalOf(world, replica, now);
    if (reason !== undefined) removed.set(id, reason);
  }
  for (const [id, engine] of world.attached) {
    const reason = endpoints.has(id) ? undefined : attachedRemoval(world, engine, now);
    if (reason !== undefined) removed.set(id, reason);
  }
  return removed;
}

function modelsOf(
  world: World,
  endpoints: readonly Plain<Endpoint>[],
  now: EpochMs,
): ReadonlyMap<string, Plain<WireModel>> {
  const served = new Set<string>();
  for (const endpoint of endpoints) if (!endpoint.draining) served.add(endpoint.model);
  return new Map(world.catalog.catalog.models.map((model) => {
    const wire = wireModel(world, model, served.has(model.name), now);
    const before = world.published.models.get(model.name);
    return [model.name, before !== undefined && sameValue(before, wire) ? before : wire];
  }));
}

function wireModel(world: World, model: Model, served: boolean, now: EpochMs): Plain<WireModel> {
  const createdAt = world.models.get(model.name)?.createdAt ?? world.startedAt;
  const asleep = desired(world, model, 0, now).reason === "asleep";
  return {
    name: model.name,
    aliases: model.aliases,
    fallbacks: model.fallbacks,
    routingProfile: model.routing_profile,
    band: model.band ?? "",
    ...(model.capacity === undefined ? {} : { capacity: model.capacity }),
    reason: served ? "" : modelReason(world, model, now),
    wakeable: !served && asleep && model.profiles.length > 0 &&
      !world.decisions.paused.has(model.name),
    createdS: BigInt(Math.floor(createdAt / 1_000)),
    ...promise("sloTtftMs", model.slo.ttft_p99),
    ...promise("sloTpotMs", model.slo.tpot_p99),
  };
}

function promise(key: "sloTtftMs" | "sloTpotMs", duration: string | undefined) {
  const ms = duration === undefined ? undefined : parseDurationMs(duration);
  return ms === undefined ? {} : { [key]: Math.max(1, Math.round(ms)) };
}

/**
 * Nodes of which control has judged everything: lost ones, and registered ones all of whose found
 * leaders are known to serve or not to. Of any other a router keeps what it had.
 */
function settledNodes(world: World, now: EpochMs): readonly NodeId[] {
  const undecided = new Set<NodeId>();
  for (const replica of world.replicas.values()) {
    if (!replica.adopted || replica.readyAt !== undefined || ending(replica)) continue;
    const lead = leader(replica);
    if (lead !== undefined && !serving(lead)) undecided.add(lead.node);
  }
  return [...world.knownNodes].filter((node) =>
    reach(world, node, now) === "lost" || (world.nodes.has(node) && !undecided.has(node))
  ).sort();
}

function sameMap<V>(a: ReadonlyMap<string, V>, b: ReadonlyMap<string, V>): boolean {
  if (a.size !== b.size) return false;
  for (const [key, value] of b) if (a.get(key) !== value || !a.has(key)) return false;
  return true;
}

/** Equal as values: flat objects of scalars and lists of scalars, as wire nouns here are. */
function sameValue(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  const [entriesA, entriesB] = [Object.entries(a), Object.entries(b)];
  if (entriesA.length !== entriesB.length) return false;
  const inB = new Map<string, unknown>(entriesB);
  return entriesA.every(([key, value]) => inB.has(key) && sameValue(value, inB.get(key)));
}
