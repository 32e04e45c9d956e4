/** An agent's answer to a command. Only the answer to the newest one counts. */
import { compareRevisions, decodeRevision } from "@heddle/proto/revision";
import type { CommandResultSeen } from "../event.ts";
import type { EpochMs } from "../ids.ts";
import type { ObservedShard, Shard, World } from "../world.ts";
import { NOT_ON_NODE } from "../facts/replica_judgement.ts";
import { findShard, seen, withShard } from "./shards.ts";

/** An agent's word for a shard that it has nothing of. */
const UNKNOWN_SHARD = "unknown_shard";

export function observeCommandResult(world: World, event: CommandResultSeen, now: EpochMs): World {
  const { node, result } = event;
  const alive = seen(world, node, now);
  const found = findShard(alive, node, result.shardId, "");
  const command = found?.shard.command;
  if (found === undefined || command === undefined) return alive;
  const revision = decodeRevision(result.revision);
  if (compareRevisions(revision, command.revision) !== 0) return alive;
  const { accepted, reason, detail } = result;
  const shard: Shard = {
    ...found.shard,
    command: { ...command, answer: { accepted, reason, detail } },
  };
  const gone = command.kind === "stop" && !accepted && reason === UNKNOWN_SHARD;
  return withShard(
    alive,
    found.replica,
    gone ? { ...shard, status: goneStatus(shard, NOT_ON_NODE, now) } : shard,
    now,
  );
}

/** The status of a shard that its node does not have. */
export function goneStatus(shard: Shard, reason: string, now: EpochMs): ObservedShard {
  return {
    state: "stopped",
    revision: shard.status?.revision ?? { term: 0, sequence: 0 },
    attempt: shard.spec.attempt,
    reason,
    message: `${shard.node} has nothing of it`,
    permanent: false,
    address: "",
    apiKey: "",
    logTail: shard.status?.logTail ?? [],
    since: now,
    progress: "",
  };
}
