/** Folds claims of attached engines, and what control saw of them, into the world. */
import type { ProbeOutcome } from "@heddle/common/engine/probe_outcome";
import type { EpochMs, ReplicaId } from "../ids.ts";
import type { World } from "../world.ts";
import {
  type AttachedClaim,
  type AttachedEngine,
  attachedId,
  type AttachedMember,
  attachedStanding,
  proofSubject,
  servingMember,
  SHOWN_LOST_MS,
} from "./attached.ts";

/** Far beyond what anybody rents, and a holder of a token cannot fill control's memory. */
const ENGINES_MAX = 10_000;
const ENGINES_PER_DEPLOYMENT_MAX = 1_000;

/** An agent says that an engine is there. `deployment` is what its certificate says. */
export interface AttachedClaimed {
  readonly kind: "attached_claimed";
  readonly deployment: string;
  readonly claim: AttachedClaim;
  /** Host from which it called. */
  readonly from: string;
}

/** Control has asked an engine through its address. */
export interface AttachedProved {
  readonly kind: "attached_proved";
  readonly engine: ReplicaId;
  readonly subject: string;
  readonly outcome: ProbeOutcome;
}

export interface ClaimRefusal {
  readonly reason: "engine_taken" | "too_many_engines";
  readonly message: string;
}

/** Why a claim is not taken; undefined when it is. */
export function claimRefusal(
  world: World,
  { deployment, claim }: AttachedClaimed,
  now: EpochMs,
): ClaimRefusal | undefined {
  const id = attachedId(deployment, claim.engineId);
  const engine = world.attached.get(id);
  if (engine === undefined) {
    const known = [...world.attached.values()].filter((each) => isShown(each, now));
    const own = known.filter((each) => each.deployment === deployment).length;
    if (known.length < ENGINES_MAX && own < ENGINES_PER_DEPLOYMENT_MAX) return undefined;
    const message = `${own} engines of deployment "${deployment}" are attached, ` +
      `${known.length} in all; want at most ${ENGINES_PER_DEPLOYMENT_MAX} and ${ENGINES_MAX}`;
    return { reason: "too_many_engines", message };
  }
  const index = firstNode(claim);
  const member = engine.members.get(index);
  if (member === undefined || member.leaseUntil <= now) return undefined;
  if (member.replaced !== claim.agentInstance) return undefined;
  return {
    reason: "engine_taken",
    message: `another agent calls itself node ${index} of engine "${claim.engineId}" of ` +
      `deployment "${deployment}" too: give each engine its own HEDDLE_ENGINE_ID, and each node ` +
      "of an engine its own HEDDLE_NODE_INDEX",
  };
}

/** The world with the claim, if it is taken. */
export function observeClaim(world: World, event: AttachedClaimed, now: EpochMs): World {
  if (claimRefusal(world, event, now) !== undefined) return world;
  const { deployment, claim, from } = event;
  const id = attachedId(deployment, claim.engineId);
  const before = world.attached.get(id);
  const index = firstNode(claim);
  const members = new Map(before?.members);
  const earlier = members.get(index);
  members.set(index, memberOf(claim, earlier, { from, leaseMs: world.timings.attachLeaseMs, now }));
  // An agent of a node that this one speaks for now, or that is long gone, counts no more.
  for (const [other, { leaseUntil }] of members) {
    const covered = other !== index && claim.nodes.some((node) => node.index === other);
    if (covered || (other !== index && leaseUntil + SHOWN_LOST_MS <= now)) members.delete(other);
  }
  const { proof, ...rest } = before ?? { id, deployment, engine: claim.engineId };
  const engine: AttachedEngine = { firstClaimedAt: now, ...rest, members };
  // What was seen of an engine that went away, or that loads again, says nothing about it now.
  const stands = before !== undefined && attachedStanding(before, now).state !== "lost" &&
    attachedStanding(engine, now).state !== "assembling" && proof !== undefined;
  const attached = new Map([...world.attached].filter(([, each]) => isShown(each, now)));
  attached.set(id, stands ? { ...engine, proof } : engine);
  return { ...world, attached };
}

function memberOf(
  claim: AttachedClaim,
  earlier: AttachedMember | undefined,
  { from, leaseMs, now }: {
    readonly from: string;
    readonly leaseMs: number;
    readonly now: EpochMs;
  },
): AttachedMember {
  const lives = earlier !== undefined && earlier.leaseUntil > now;
  const same = earlier?.claim.agentInstance === claim.agentInstance;
  const replaced = same || !lives ? earlier?.replaced : earlier.claim.agentInstance;
  return {
    claim,
    from,
    claimedAt: now,
    leaseUntil: now + leaseMs,
    since: lives && earlier.claim.state === claim.state ? earlier.since : now,
    ...(replaced === undefined ? {} : { replaced }),
  };
}

/** The world with what was seen; the same when the engine says something else by now. */
export function observeProof(
  world: World,
  { engine: id, subject, outcome }: AttachedProved,
  now: EpochMs,
): World {
  const engine = world.attached.get(id);
  const member = engine === undefined ? undefined : servingMember(engine);
  if (engine === undefined || member === undefined || proofSubject(member) !== subject) {
    return world;
  }
  if (attachedStanding(engine, now).state === "assembling") return world;
  const attached = new Map(world.attached).set(id, {
    ...engine,
    proof: { subject, outcome, at: now },
  });
  return { ...world, attached };
}

/** Whether a claim changes what routers get or operators decide by; most only renew. */
export function claimMatters(
  world: World,
  { deployment, claim, from }: AttachedClaimed,
  now: EpochMs,
): boolean {
  const member = world.attached.get(attachedId(deployment, claim.engineId))
    ?.members.get(firstNode(claim));
  if (member === undefined || member.leaseUntil <= now || member.from !== from) return true;
  return decisive(member.claim) !== decisive(claim);
}

function decisive({ state, endpoint, enginePort, model, apiKey, nodes, provider }: AttachedClaim) {
  const parts = nodes.map(({ index, cards }) => [index, cards.length]);
  return JSON.stringify([state, endpoint, enginePort, model, apiKey, provider, parts]);
}

/** Undefined indices do not pass the door. */
function firstNode({ nodes }: AttachedClaim): number {
  return nodes[0]?.index ?? 0;
}

function isShown(engine: AttachedEngine, now: EpochMs): boolean {
  const { state, since } = attachedStanding(engine, now);
  return state !== "lost" || now < since + SHOWN_LOST_MS;
}
