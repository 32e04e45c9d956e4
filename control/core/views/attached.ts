/** Attached engines as operators see them: beside nodes and replicas, and marked as what they are. */
import type { AttachedState } from "@heddle/proto/attached_state";
import type { NodeState } from "@heddle/proto/node_state";
import type { ReplicaState } from "@heddle/proto/replica_state";
import type { ShardState } from "@heddle/proto/shard_state";
import {
  attachedAddress,
  type AttachedEngine,
  type AttachedMember,
  attachedNode,
  attachedStanding,
  servingMember,
  SHOWN_LOST_MS,
} from "../attach/attached.ts";
import { drainOf, publicationOf } from "../attach/publication.ts";
import { inFlightOf } from "../facts/work.ts";
import type { EpochMs } from "../ids.ts";
import type { AttachedView, NodeView, ReplicaView } from "../views.ts";
import type { World } from "../world.ts";
import { viewNodes } from "./nodes.ts";
import { viewReplicas } from "./replicas.ts";

/** What agents of nodes run, and beside it the nodes of attached engines. */
export function viewEveryNode(world: World, now: EpochMs): readonly NodeView[] {
  return [...viewNodes(world, now), ...viewAttachedNodes(world, now)];
}

/** What Heddle runs, and beside it what is attached. */
export function viewEveryReplica(world: World, now: EpochMs): readonly ReplicaView[] {
  return [...viewReplicas(world, now), ...viewAttachedReplicas(world, now)];
}

/** Every node of every attached engine, by name. */
export function viewAttachedNodes(world: World, now: EpochMs): readonly NodeView[] {
  return shown(world, now).flatMap((engine) =>
    [...engine.members.values()].flatMap((member) =>
      member.claim.nodes.map((node) => viewNode(world, { engine, member, node }, now))
    )
  ).sort((a, b) => compare(a.name, b.name));
}

/** Every attached engine, by id. */
export function viewAttachedReplicas(world: World, now: EpochMs): readonly ReplicaView[] {
  return shown(world, now).map((engine) => viewReplica(world, engine, now));
}

/** Whether routers have an engine, and why not, for its agent. */
export function attachedAnswer(world: World, id: string, now: EpochMs): {
  readonly state: AttachedState;
  readonly published: boolean;
  readonly waitingFor: string;
} {
  const engine = world.attached.get(id);
  if (engine === undefined) return { state: "lost", published: false, waitingFor: "not attached" };
  const publication = publicationOf(world, engine, now);
  return {
    state: stateOf(world, engine, now),
    published: publication.kind === "published",
    waitingFor: publication.kind === "published" ? "" : publication.why,
  };
}

function shown(world: World, now: EpochMs): readonly AttachedEngine[] {
  return [...world.attached.values()].filter((engine) => {
    const { state, since } = attachedStanding(engine, now);
    return state !== "lost" || now < since + SHOWN_LOST_MS;
  }).sort((a, b) => compare(a.id, b.id));
}

function stateOf(world: World, engine: AttachedEngine, now: EpochMs): AttachedState {
  const { state } = attachedStanding(engine, now);
  return state !== "lost" && drainOf(world, engine) !== undefined ? "draining" : state;
}

type ClaimedNode = AttachedMember["claim"]["nodes"][number];

function viewNode(
  world: World,
  { engine, member, node }: {
    readonly engine: AttachedEngine;
    readonly member: AttachedMember;
    readonly node: ClaimedNode;
  },
  now: EpochMs,
): NodeView {
  const name = attachedNode(engine.id, node.index);
  const decision = world.decisions.nodes.get(name);
  const lost = member.leaseUntil <= now;
  const own = node === member.claim.nodes[0];
  return {
    name,
    state: nodeState(lost, decision?.kind),
    address: own ? member.from : "",
    agentVersion: member.claim.agentVersion,
    ...(own ? { lastSeenMs: Math.max(0, now - member.claimedAt) } : {}),
    usedGpus: [],
    replicaIds: [engine.id],
    cordoned: decision?.kind === "cordon",
    draining: decision?.kind === "drain",
    decidedBy: decision?.by ?? "",
    decisionReason: decision?.reason ?? "",
    operatorLabels: world.decisions.labels.get(name) ?? {},
    attached: attachedView(world, { engine, member, node }, now),
  };
}

function nodeState(lost: boolean, decision: "cordon" | "drain" | undefined): NodeState {
  if (lost) return "lost";
  return decision === "drain" ? "draining" : decision === "cordon" ? "cordoned" : "ready";
}

function attachedView(
  world: World,
  { engine, member, node }: {
    readonly engine: AttachedEngine;
    readonly member: AttachedMember;
    readonly node: ClaimedNode | undefined;
  },
  now: EpochMs,
): AttachedView {
  const { provider, staging } = member.claim;
  return {
    state: member.leaseUntil <= now ? "lost" : stateOf(world, engine, now),
    deploymentId: engine.deployment,
    engineId: engine.engine,
    provider,
    hostId: node?.hostId ?? "",
    leaseLeftMs: Math.max(0, member.leaseUntil - now),
    ...(node?.nvlinks === undefined ? {} : { nvlinks: node.nvlinks }),
    ...(staging === undefined ? {} : { staging }),
    ...(node?.cardsRead === true ? { cards: node.cards.length } : {}),
  };
}

const REPLICA_STATES: Readonly<Record<AttachedState, ReplicaState>> = {
  assembling: "starting",
  serving: "ready",
  degraded: "ready",
  draining: "draining",
  lost: "failed",
  unknown: "unknown",
};

const SHARD_STATES: Readonly<Record<AttachedState, ShardState>> = {
  assembling: "loading",
  serving: "ready",
  degraded: "degraded",
  draining: "draining",
  lost: "failed",
  unknown: "unknown",
};

function viewReplica(world: World, engine: AttachedEngine, now: EpochMs): ReplicaView {
  const standing = attachedStanding(engine, now);
  const state = stateOf(world, engine, now);
  const member = servingMember(engine);
  const publication = publicationOf(world, engine, now);
  const words = standing.message === "" ? standing.reason : standing.message;
  const why = publication.kind === "published" || publication.why === words
    ? ""
    : `not routed to: ${publication.why}`;
  const inFlight = inFlightOf(world, engine.id, now);
  return {
    replicaId: engine.id,
    model: member?.claim.model ?? "",
    profile: "attached",
    state: REPLICA_STATES[state],
    reason: [words, why].filter((each) => each !== "").join("; "),
    address: member === undefined ? "" : attachedAddress(member) ?? "no endpoint",
    shards: [...engine.members.values()].flatMap(({ claim, leaseUntil }) =>
      claim.nodes.map((node) => ({
        shardId: `${engine.id}/${node.index}`,
        node: attachedNode(engine.id, node.index),
        rank: node.index,
        state: SHARD_STATES[leaseUntil <= now ? "lost" : state],
        gpus: node.cards.map((_, index) => index),
        hcas: [],
        reason: "",
        message: "",
        logTail: [],
        progress: "",
      }))
    ).sort((a, b) => a.rank - b.rank),
    inStateMs: Math.max(0, now - standing.since),
    ...(inFlight === undefined ? {} : { inFlight }),
    engine: "attached",
    fabric: "",
    ...(member === undefined
      ? {}
      : { attached: attachedView(world, { engine, member, node: member.claim.nodes[0] }, now) }),
  };
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
