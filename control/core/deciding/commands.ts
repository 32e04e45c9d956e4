/** What is sent for each shard, or why nothing is. Every shard ends in exactly one list. */
import type { EpochMs } from "../ids.ts";
import type { StopShard, WaitReason } from "../plan.ts";
import type { Command, Replica, Shard, StopReason } from "../world.ts";
import { formatDurationMs } from "@heddle/common/duration";
import { classify, stopDeadline } from "./classify.ts";
import type { Pass } from "./pass.ts";
import { act, keep, wait } from "./pass.ts";
import { nextRevision } from "./draft.ts";

/** Treats every shard of every replica, in the order of ids. */
export function commandShards(pass: Pass): void {
  for (const id of [...pass.draft.replicas.keys()].sort()) {
    const replica = pass.draft.replicas.get(id);
    if (replica === undefined) continue;
    // Whatever the answer, the ranks of one launch share one revision, so it is made once.
    const launch = launchRevision(pass, replica);
    for (const shard of replica.shards) commandShard(pass, replica, shard, launch);
  }
}

function commandShard(pass: Pass, replica: Replica, shard: Shard, launch: LaunchRevision): void {
  const { now } = pass;
  const hold = (why: WaitReason, detail: string, until?: EpochMs) =>
    wait(pass, {
      subject: "shard",
      id: shard.id,
      why,
      detail,
      ...(until === undefined ? {} : { until }),
    });
  switch (classify(pass.world, replica, shard, now)) {
    case "gone":
    case "keep":
      return keep(pass, shard.id);
    case "start":
      return start(pass, replica, shard, launch());
    case "start_again":
      return start(pass, replica, shard, shard.command?.revision ?? launch());
    case "stop":
      return stop(pass, replica, shard, nextRevision(pass.draft));
    case "stop_again":
      return stop(pass, replica, shard, shard.command?.revision ?? nextRevision(pass.draft));
    case "start_in_flight":
    case "stop_in_flight":
      return hold(
        "command_in_flight",
        inFlight(shard.command, shard, now),
        shard.command?.deadline,
      );
    case "leader_first":
      return hold("leader_first", `rank ${shard.rank} starts once rank 0 listens`);
    case "coming_up":
      return hold("starting", shard.status?.progress || shard.status?.state || "accepted");
    case "stopping":
      return hold("stopping", `${shard.node} stops it`, stopDeadline(pass.world, shard));
    case "unknown":
      return hold("unknown_state", `${shard.node} reports a state that this version does not know`);
    case "node_away":
      return hold("node_away", `${shard.node} has no open stream; it is told when it returns`);
    case "node_lost":
      return hold("node_lost", `${shard.node} is lost; what it runs is judged when it returns`);
  }
}

type LaunchRevision = () => Command["revision"];

function launchRevision(pass: Pass, replica: Replica): LaunchRevision {
  let revision = pass.placedRevisions.get(replica.id);
  return () => revision ??= nextRevision(pass.draft);
}

function start(pass: Pass, replica: Replica, shard: Shard, revision: Command["revision"]): void {
  act(pass, {
    kind: "start_shard",
    shard: shard.id,
    replica: replica.id,
    node: shard.node,
    spec: shard.spec,
    revision,
  });
}

function stop(pass: Pass, replica: Replica, shard: Shard, revision: Command["revision"]): void {
  const action: StopShard = {
    kind: "stop_shard",
    shard: shard.id,
    replica: replica.id,
    node: shard.node,
    reason: stopReason(replica),
    graceMs: 0,
    revision,
  };
  act(pass, action);
}

function stopReason(replica: Replica): StopReason {
  return replica.failure === undefined ? replica.stopping?.reason ?? "drained" : "replica_failed";
}

function inFlight(command: Command | undefined, shard: Shard, now: EpochMs): string {
  const verb = command?.kind ?? "start";
  const since = formatDurationMs(now - (command?.sentAt ?? now));
  return `${shard.node} was told to ${verb} it ${since} ago and has not answered`;
}
