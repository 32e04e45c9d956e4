/**
 * A node tells everything. What it runs is true, whatever this world believed: shards it reports are
 * adopted, shards it does not report are gone, and its inventory replaces the one before.
 */
import type { Plain } from "@heddle/proto/plain";
import type { Inventory, ShardReport } from "@heddle/proto/gen/types";
import { reach } from "../facts/node_state.ts";
import { ended } from "../facts/shard_facts.ts";
import { MACHINE_RESTARTED, NOT_ON_NODE } from "../facts/replica_judgement.ts";
import type { Registered } from "../event.ts";
import { compareRevisions } from "@heddle/proto/revision";
import type { ShardState } from "@heddle/proto/shard_state";
import type { EpochMs, NodeId } from "../ids.ts";
import { withEntry, withMember } from "./layered_map.ts";
import type { Node, Replica, Shard, World } from "../world.ts";
import { adopt } from "./adopt.ts";
import { goneStatus } from "./command_result.ts";
import { observedShard, withReplica } from "./shards.ts";

export function observeRegistered(world: World, event: Registered, now: EpochMs): World {
  const before = world.nodes.get(event.node);
  const restarted = before !== undefined && before.bootId !== event.bootId;
  const here: World = {
    ...raisedTerm(world, event),
    knownNodes: withMember(world.knownNodes, event.node),
    nodes: withEntry(world.nodes, event.node, registeredNode(world, event, now)),
  };
  const reported = new Map(
    event.shards.flatMap((report) =>
      report.spec === undefined ? [] : [[report.spec.shardId, report] as const]
    ),
  );
  const candidates = before === undefined
    ? reportedReplicas(world, event)
    : world.replicas.values();
  const known = updateKnown(here, candidates, { node: event.node, reported, restarted }, now);
  return [...reported.values()].reduce(
    (so, report) => adopt(so, event.node, report, now),
    known,
  );
}

/**
 * A revision that this control has not given is of another one, as after a restored backup: what is
 * decided from now on must be newer. An agent that has not registered before can have none of ours.
 */
function raisedTerm(world: World, { node, highestRevision: highest }: Registered): World {
  const ours = world.nodes.has(node)
    ? compareRevisions(highest, world) <= 0
    : highest.term < world.term;
  return ours ? world : { ...world, term: highest.term + 1, sequence: 0 };
}

function registeredNode(world: World, event: Registered, now: EpochMs): Node {
  const before = world.nodes.get(event.node);
  const lost = world.knownNodes.has(event.node) && reach(world, event.node, now) === "lost";
  const returnedAt = lost ? now : before?.returnedAt;
  return {
    name: event.node,
    address: event.address,
    agentVersion: event.agentVersion,
    bootId: event.bootId,
    agentInstance: event.agentInstance,
    inventory: withRemembered(event.inventory, before?.inventory),
    registeredAt: now,
    lastSeenAt: now,
    connected: true,
    ...(returnedAt === undefined ? {} : { returnedAt }),
    ...(before?.foreignPorts === undefined ? {} : { foreignPorts: before.foreignPorts }),
  };
}

/** "No news" is not "nothing": lists that the node has not looked up yet stay as they were. */
function withRemembered(
  inventory: Plain<Inventory>,
  before: Plain<Inventory> | undefined,
): Plain<Inventory> {
  if (before === undefined) return inventory;
  return {
    ...inventory,
    ...(inventory.enginesProbed
      ? {}
      : { engines: before.engines, enginesProbed: before.enginesProbed }),
    ...(inventory.modelFilesPresent
      ? {}
      : { modelFiles: before.modelFiles, modelFilesPresent: before.modelFilesPresent }),
  };
}

/**
 * Of a node that had not registered nothing is known that it does not report, so a fleet that comes
 * back at once is not looked through for each of its nodes.
 */
function reportedReplicas(world: World, { shards }: Registered): readonly Replica[] {
  const ids = new Set(shards.map(({ spec }) => spec?.replicaId ?? ""));
  return [...ids].flatMap((id) => world.replicas.get(id) ?? []);
}

interface Told {
  readonly node: NodeId;
  readonly reported: ReadonlyMap<string, Plain<ShardReport>>;
  /** The machine itself restarted, so nothing of before runs. */
  readonly restarted: boolean;
}

function updateKnown(
  world: World,
  candidates: Iterable<Replica>,
  told: Told,
  now: EpochMs,
): World {
  let next = world;
  for (const replica of candidates) {
    if (!replica.shards.some((shard) => shard.node === told.node)) continue;
    const shards = replica.shards.map((shard) =>
      shard.node === told.node ? toldShard(shard, told, now) : shard
    );
    const updated: Replica = { ...replica, shards };
    next = withReplica(next, updated, now);
  }
  return next;
}

function toldShard(shard: Shard, { reported, restarted }: Told, now: EpochMs): Shard {
  const status = reported.get(shard.id)?.status;
  if (status !== undefined) {
    const observed = observedShard(status, shard.status, now);
    return { ...withUnheardCommand(shard, observed.state, now), status: observed };
  }
  if (ended(shard)) return shard;
  const { command } = shard;
  if (shard.status === undefined && command?.kind !== "stop") {
    // A start that never arrived is sent again at once; one that was answered has come to nothing.
    if (command === undefined) return shard;
    if (command.answer?.accepted !== true) {
      return { ...shard, command: { ...command, deadline: now } };
    }
  }
  const reason = restarted ? MACHINE_RESTARTED : NOT_ON_NODE;
  return { ...shard, status: goneStatus(shard, reason, now) };
}

/** A command that the old stream may have lost is due again; so is a stop that the agent forgot. */
function withUnheardCommand(shard: Shard, state: ShardState, now: EpochMs): Shard {
  const { command } = shard;
  if (command === undefined) return shard;
  const forgotten = command.kind === "stop" &&
    !["draining", "stopping", "stopped", "failed"].includes(state);
  if (command.answer !== undefined && !forgotten) return shard;
  const { answer: _answer, ...unanswered } = command;
  return { ...shard, command: { ...unanswered, deadline: now } };
}
