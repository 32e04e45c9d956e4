/** Which bucket a shard is in. One exhaustive switch; `commands.ts` has one arm per bucket. */
import { compareRevisions } from "@heddle/proto/revision";
import type { EpochMs } from "../ids.ts";
import type { Command, Replica, Shard, World } from "../world.ts";
import { reach } from "../facts/node_state.ts";
import { STALE_REVISION } from "../facts/replica_judgement.ts";
import { ended, ending, leader } from "../facts/shard_facts.ts";

export type Bucket =
  /** Nothing of it runs. */
  | "gone"
  /** To be started for the first time, or again with a new revision. */
  | "start"
  /** No answer came: the same command again. */
  | "start_again"
  | "start_in_flight"
  /** A worker that waits until its leader listens. */
  | "leader_first"
  /** Accepted, not ready yet. */
  | "coming_up"
  /** As it should be. */
  | "keep"
  /** A newer agent says what this version does not know: shown, not touched. */
  | "unknown"
  | "stop"
  | "stop_again"
  | "stop_in_flight"
  /** Accepted, not stopped yet. */
  | "stopping"
  /** A command is due, but the node's stream is closed or it is unreachable. */
  | "node_away"
  | "node_lost";

/** How long beyond the engine's own stop time a stop may take before it is asked for anew. */
const STOP_MARGIN_MS = 30_000;

export function classify(world: World, replica: Replica, shard: Shard, now: EpochMs): Bucket {
  return ending(replica)
    ? classifyEnding(world, shard, now)
    : classifyLive(world, replica, shard, now);
}

function classifyEnding(world: World, shard: Shard, now: EpochMs): Bucket {
  if (ended(shard)) return "gone";
  // It was decided and never sent: there is nothing to stop.
  if (shard.status === undefined && shard.command === undefined) return "gone";
  if (!world.knownNodes.has(shard.node)) return "gone";
  if (reach(world, shard.node, now) === "lost") return "node_lost";
  const { command } = shard;
  const away = world.nodes.get(shard.node)?.connected !== true;
  if (command?.kind !== "stop") {
    // An agent that refused to start it has nothing of it.
    if (shard.status === undefined && command?.answer?.accepted === false) return "gone";
    return away ? "node_away" : "stop";
  }
  // An agent that has nothing of a shard accepts its stop and has no more to say.
  if (shard.status === undefined && command.answer?.accepted === true) return "gone";
  if (command.answer === undefined) {
    if (now < command.deadline) return "stop_in_flight";
    return away ? "node_away" : "stop_again";
  }
  if (command.answer.accepted && now < stopDeadline(world, shard)) return "stopping";
  if (!command.answer.accepted && now < command.deadline) return "stop_in_flight";
  return away ? "node_away" : "stop";
}

/** By when an accepted stop should have been reported done. */
export function stopDeadline(world: World, shard: Shard): EpochMs {
  return (shard.command?.sentAt ?? 0) + world.timings.stopTimeoutMs + STOP_MARGIN_MS;
}

function classifyLive(world: World, replica: Replica, shard: Shard, now: EpochMs): Bucket {
  if (reach(world, shard.node, now) === "lost") return "node_lost";
  const state = shard.status?.state;
  switch (state) {
    case undefined:
      return classifyUnseen(world, replica, shard, now);
    case "preparing":
    case "starting":
    case "loading":
      return "coming_up";
    case "ready":
    case "degraded":
      return "keep";
    case "draining":
    case "stopping":
      // Told by an earlier control; the end of it is judged when it comes.
      return "stopping";
    case "stopped":
    case "failed":
      // The replica fails in this pass, before its shards are classified.
      return "gone";
    case "unknown":
      return "unknown";
  }
}

function classifyUnseen(world: World, replica: Replica, shard: Shard, now: EpochMs): Bucket {
  const { command } = shard;
  const away = world.nodes.get(shard.node)?.connected !== true;
  if (command?.kind === "start") {
    if (command.answer?.accepted === true) return "coming_up";
    const stale = command.answer?.reason === STALE_REVISION;
    if (now < command.deadline && !(stale && overtaken(world, command))) return "start_in_flight";
    if (away) return "node_away";
    return stale ? "start" : "start_again";
  }
  if (waitsForLeader(replica, shard)) return "leader_first";
  return away ? "node_away" : "start";
}

/** A newer decision of this term explains why its revision was refused, so a new one will not be. */
function overtaken(world: World, { revision }: Command): boolean {
  return compareRevisions(revision, { term: world.term, sequence: world.sequence }) < 0;
}

/** Ray workers join a head that listens; with other launch modes ranks may come in any order. */
function waitsForLeader(replica: Replica, shard: Shard): boolean {
  if (shard.rank === 0 || shard.spec.launchMode !== "ray") return false;
  const state = leader(replica)?.status?.state;
  return state === undefined || state === "preparing";
}
