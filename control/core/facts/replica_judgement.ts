/** Whether a replica has failed, and from what. One failed shard fails the whole of it. */
import { formatDurationMs } from "@heddle/common/duration";
import type { EpochMs } from "../ids.ts";
import type { FailReplica } from "../plan.ts";
import type { Replica, Shard, World } from "../world.ts";
import { reach } from "./node_state.ts";
import { settled } from "./settled.ts";
import { ending, whole } from "./shard_facts.ts";

/** Reasons of ours that a shard is given when its node does not report it any more. */
export const NOT_ON_NODE = "not_on_node";
export const MACHINE_RESTARTED = "machine_restarted";
export const NODE_FORGOTTEN = "node_forgotten";

/** An agent's word for a command whose revision is below the highest it has accepted. */
export const STALE_REVISION = "stale_revision";

/** The failure that the facts show; undefined when there is none, or none yet. */
export function failureOf(
  world: World,
  replica: Replica,
  now: EpochMs,
): FailReplica | undefined {
  if (ending(replica)) return undefined;
  return brokenShard(replica) ?? lostNode(world, replica, now) ?? partial(world, replica, now) ??
    neverReady(world, replica, now);
}

/** Every shard's node is lost, and there is only one: it may come back whole, so it is not failed. */
export function away(world: World, replica: Replica, now: EpochMs): boolean {
  return replica.shards.some((shard) => reach(world, shard.node, now) === "lost");
}

/** What befell a node says nothing of the model. */
const LOSS = { counts: false } as const;

function brokenShard(replica: Replica): FailReplica | undefined {
  const broken = replica.shards.filter(isBroken).sort(earliestFirst)[0];
  if (broken === undefined) return undefined;
  const { status, command } = broken;
  if (status?.state === "failed" || status?.state === "stopping") {
    return fail(replica, "shard_failed", shardMessage(broken), {
      permanent: status.permanent,
      shard: broken,
    });
  }
  if (status?.state === "stopped") {
    switch (status.reason) {
      case MACHINE_RESTARTED:
        return fail(replica, "node_lost", `the machine ${broken.node} restarted`, LOSS);
      case NODE_FORGOTTEN:
        return fail(replica, "node_lost", `its node ${broken.node} was forgotten`, LOSS);
      default:
        return fail(replica, "shard_vanished", shardMessage(broken), { shard: broken });
    }
  }
  const why = command?.answer?.detail || command?.answer?.reason || "without a reason";
  return fail(replica, "start_refused", `${broken.node} refused to start it: ${why}`, {
    shard: broken,
  });
}

/** Stopping without having been told to is failing: what is left of it is being cleaned up. */
function isBroken(shard: Shard): boolean {
  const state = shard.status?.state;
  return state === "failed" || state === "stopping" || state === "stopped" || refused(shard);
}

/** The agent said no, and not merely that the revision was old. */
function refused({ status, command }: Shard): boolean {
  return status === undefined && command?.kind === "start" &&
    command.answer?.accepted === false && command.answer.reason !== STALE_REVISION;
}

// Peers of a failed rank fail too, later and louder; what came first is the cause.
function earliestFirst(a: Shard, b: Shard): number {
  return (a.status?.since ?? Infinity) - (b.status?.since ?? Infinity) || a.rank - b.rank;
}

function lostNode(world: World, replica: Replica, now: EpochMs): FailReplica | undefined {
  // A single shard on a lost node may be found healthy when the node returns, and is judged then.
  if (replica.shardCount === 1) return undefined;
  const lost = replica.shards.find((shard) => reach(world, shard.node, now) === "lost");
  return lost === undefined
    ? undefined
    : fail(replica, "node_lost", `its node ${lost.node} is lost`, { counts: false });
}

function partial(world: World, replica: Replica, now: EpochMs): FailReplica | undefined {
  if (whole(replica) || !settled(world, now) || now < partialDeadline(world, replica)) {
    return undefined;
  }
  const found = replica.shards.map((shard) => shard.rank).join(", ");
  return fail(
    replica,
    "partial",
    `only rank ${found} of ${replica.shardCount} shards was found running`,
    { counts: false },
  );
}

/** Nodes that return together do so within a few heartbeats of each other. */
export function partialDeadline(world: World, replica: Replica): EpochMs {
  return replica.createdAt + world.timings.unreachableMs;
}

function neverReady(world: World, replica: Replica, now: EpochMs): FailReplica | undefined {
  if (replica.readyAt !== undefined || now < replica.readyDeadline) return undefined;
  // What a newer agent says, and what an absent one does not say, is not judged.
  if (replica.shards.some((shard) => shard.status?.state === "unknown")) return undefined;
  if (replica.shards.some((shard) => reach(world, shard.node, now) !== "reachable")) {
    return undefined;
  }
  const took = formatDurationMs(now - replica.createdAt);
  const slowest = replica.shards.find((shard) => shard.status?.state !== "ready");
  const stage = slowest?.status?.progress || slowest?.status?.state || "not started";
  return fail(replica, "startup_timeout", `not ready after ${took}; last seen: ${stage}`, {
    ...(slowest === undefined ? {} : { shard: slowest }),
  });
}

function shardMessage(shard: Shard): string {
  const { status } = shard;
  const words = [status?.reason ?? "", status?.message ?? ""].filter((each) => each !== "");
  return `shard ${shard.id} on ${shard.node}: ${words.join(": ") || status?.state}`;
}

function fail(
  replica: Replica,
  reason: FailReplica["reason"],
  message: string,
  options: { permanent?: boolean; counts?: boolean; shard?: Shard },
): FailReplica {
  return {
    kind: "fail_replica",
    replica: replica.id,
    reason,
    message,
    permanent: options.permanent ?? false,
    ...(options.shard === undefined ? {} : { shard: options.shard.id }),
    logTail: options.shard?.status?.logTail ?? [],
    counts: options.counts ?? true,
  };
}
