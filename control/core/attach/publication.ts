/**
 * Which attached engines routers get. One becomes an endpoint only after control itself has seen
 * health, the model's name and one token through its address; it goes when its lease ends, or when
 * its agent says that it is not ready.
 */
import type { Endpoint } from "@heddle/proto/gen/router";
import type { Plain } from "@heddle/proto/plain";
import { findModel, type Model } from "../catalog.ts";
import type { EpochMs, ReplicaId } from "../ids.ts";
import type { RemovalReason } from "../published.ts";
import type { NodeDecision, World } from "../world.ts";
import {
  attachedAddress,
  type AttachedEngine,
  type AttachedMember,
  attachedNode,
  attachedStanding,
  proofSubject,
  servingMember,
  SHOWN_LOST_MS,
} from "./attached.ts";

/** Before an address that failed is asked again. */
const PROVE_AGAIN_MS = 5_000;

/** In `attach` of a model: engines of any deployment. */
const ANY_DEPLOYMENT = "*";

export type Publication =
  | { readonly kind: "published"; readonly endpoint: Plain<Endpoint> }
  /** Why not, in words; `prove` when only control's own look is missing. */
  | { readonly kind: "waiting"; readonly why: string; readonly prove: boolean };

/** Whether routers get the engine, and as what. */
export function publicationOf(
  world: World,
  engine: AttachedEngine,
  now: EpochMs,
): Publication {
  const { state, reason, message } = attachedStanding(engine, now);
  const member = servingMember(engine);
  if (member === undefined || state === "lost") return waiting("its lease has ended");
  if (state === "assembling") {
    return waiting(message === "" ? reason || "its agent says that it is not ready" : message);
  }
  const model = findModel(world.catalog.catalog, member.claim.model);
  const unfit = modelProblem(model, engine, member.claim.model);
  if (unfit !== undefined || model === undefined) return waiting(unfit ?? "");
  const address = attachedAddress(member);
  if (address === undefined) {
    return waiting("no endpoint: set HEDDLE_ENGINE_ENDPOINT to host:port where routers reach it");
  }
  const { proof } = engine;
  if (proof === undefined || proof.subject !== proofSubject(member)) {
    return { kind: "waiting", why: `control has yet to ask ${address}`, prove: true };
  }
  if (proof.outcome.kind !== "ready") {
    return { kind: "waiting", why: `${address}: ${proof.outcome.why}`, prove: true };
  }
  const { maxModelLen } = proof.outcome;
  const endpoint = endpointOf(world, engine, {
    member,
    model,
    address,
    degraded: state !== "serving",
  });
  return {
    kind: "published",
    endpoint: { ...endpoint, ...(maxModelLen === undefined ? {} : { maxModelLen }) },
  };
}

function waiting(why: string): Publication {
  return { kind: "waiting", why, prove: false };
}

function modelProblem(
  model: Model | undefined,
  { deployment }: AttachedEngine,
  name: string,
): string | undefined {
  if (name === "") return "nobody said which model it serves: set HEDDLE_ENGINE_MODEL";
  if (model === undefined) return `no model "${name}" in the catalog`;
  if (model.attach.includes(deployment) || model.attach.includes(ANY_DEPLOYMENT)) return undefined;
  return `model "${model.name}" takes no engines of deployment "${deployment}": add it to the ` +
    "model's attach in the catalog";
}

function endpointOf(
  world: World,
  engine: AttachedEngine,
  { member, model, address, degraded }: {
    readonly member: AttachedMember;
    readonly model: Model;
    readonly address: string;
    readonly degraded: boolean;
  },
): Plain<Endpoint> {
  const nodes = [...engine.members.values()].flatMap(({ claim }) => claim.nodes);
  return {
    replicaId: engine.id,
    model: model.name,
    address,
    node: attachedNode(engine.id, member.claim.nodes[0]?.index ?? 0),
    engine: "attached",
    profile: "attached",
    servedName: member.claim.model,
    apiKey: member.claim.apiKey,
    weight: 1,
    priority: 0,
    draining: drainOf(world, engine) !== undefined,
    pool: `${member.claim.provider || engine.deployment}/attached`,
    gpus: nodes.reduce((sum, { cards }) => sum + cards.length, 0),
    degraded,
  };
}

/** An operator's drain of one of its nodes: nothing new goes to it. Ending it is nobody's here. */
export function drainOf(world: World, engine: AttachedEngine): NodeDecision | undefined {
  return [...engine.members.values()].flatMap(({ claim }) => claim.nodes)
    .map(({ index }) => world.decisions.nodes.get(attachedNode(engine.id, index)))
    .find((decision) => decision?.kind === "drain");
}

/** Endpoints of all attached engines, by id. */
export function attachedEndpoints(
  world: World,
  now: EpochMs,
): ReadonlyMap<ReplicaId, Plain<Endpoint>> {
  const endpoints = new Map<ReplicaId, Plain<Endpoint>>();
  for (const id of [...world.attached.keys()].sort()) {
    const engine = world.attached.get(id);
    if (engine === undefined) continue;
    const publication = publicationOf(world, engine, now);
    if (publication.kind === "published") endpoints.set(id, publication.endpoint);
  }
  return endpoints;
}

/**
 * Why an attached engine is no endpoint; undefined for one that nobody is shown any more, and for one
 * that this control has never asked: routers may have it from the control that was before.
 */
export function attachedRemoval(
  world: World,
  engine: AttachedEngine,
  now: EpochMs,
): RemovalReason | undefined {
  const { state, since } = attachedStanding(engine, now);
  if (state === "lost") return now < since + SHOWN_LOST_MS ? "lost" : undefined;
  return engine.proof === undefined && proofPending(world, engine, now) ? undefined : "stopped";
}

/** What control should ask an engine now; undefined when there is nothing to ask. */
export function proofDue(
  world: World,
  id: ReplicaId,
  now: EpochMs,
): AttachedMember | undefined {
  const engine = world.attached.get(id);
  if (engine === undefined) return undefined;
  const publication = publicationOf(world, engine, now);
  if (publication.kind !== "waiting" || !publication.prove) return undefined;
  const member = servingMember(engine);
  if (member === undefined) return undefined;
  const { proof } = engine;
  const again = proof?.subject === proofSubject(member) && now < proof.at + PROVE_AGAIN_MS;
  return again ? undefined : member;
}

/**
 * A control that has just started has heard of no attached engine. Until each had the time to renew,
 * routers keep those that they know: were it said before that all is settled, healthy ones would go.
 */
export function attachedSettled(world: World, now: EpochMs): boolean {
  const { attachLeaseMs, settleMs } = world.timings;
  if (attachLeaseMs === 0) return true;
  const heardBy = world.startedAt + attachLeaseMs;
  if (now < heardBy) return false;
  if (now >= world.startedAt + Math.max(attachLeaseMs, settleMs)) return true;
  return ![...world.attached.values()].some((engine) =>
    engine.firstClaimedAt <= heardBy && engine.proof === undefined &&
    publicationOf(world, engine, now).kind === "waiting" &&
    attachedStanding(engine, now).state !== "lost" && proofPending(world, engine, now)
  );
}

function proofPending(world: World, engine: AttachedEngine, now: EpochMs): boolean {
  const publication = publicationOf(world, engine, now);
  return publication.kind === "waiting" && publication.prove;
}

/** When time alone changes what routers get; undefined when it does not. */
export function nextAttachedChange(world: World, now: EpochMs): EpochMs | undefined {
  const { attachLeaseMs, settleMs } = world.timings;
  if (attachLeaseMs === 0) return undefined;
  const times = [
    world.startedAt + attachLeaseMs,
    world.startedAt + Math.max(attachLeaseMs, settleMs),
    ...[...world.attached.values()].flatMap(({ members }) =>
      [...members.values()].map(({ leaseUntil }) => leaseUntil)
    ),
  ].filter((at) => at > now);
  return times.length === 0 ? undefined : times.reduce((a, b) => Math.min(a, b));
}
