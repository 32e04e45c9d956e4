/** The agent's facts as wire messages. */
import { create } from "@bufbuild/protobuf";
import {
  type CommandResult,
  CommandResultSchema,
  type ConnectRequest,
  ConnectRequestSchema,
  type ShardLoad,
  ShardLoadSchema,
} from "@heddle/proto/gen/agent";
import {
  ExitRecordSchema,
  type ShardReport,
  ShardReportSchema,
  type ShardStatus,
  ShardStatusSchema,
} from "@heddle/proto/gen/types";
import { encodeRevision, type Revision } from "@heddle/proto/revision";
import { encodeShardState } from "@heddle/proto/shard_state";
import type { Verdict } from "../../core/accept.ts";
import type { EngineLoad } from "../../core/shard/event.ts";
import { leads, type Shard, type ShardSpec } from "../../core/shard/shard.ts";
import type { Status } from "../../core/shard/status.ts";
import { specMessage } from "../wire_spec.ts";

type Message = ConnectRequest["message"];

export function request(message: Exclude<Message, { case: undefined }>): ConnectRequest {
  return create(ConnectRequestSchema, { message });
}

export function encodeStatus(shard: Shard, status: Status): ShardStatus {
  const { load, exit, pid, maxModelLen } = status;
  return create(ShardStatusSchema, {
    shardId: shard.spec.shardId,
    replicaId: shard.spec.replicaId,
    state: encodeShardState(status.state),
    revision: encodeRevision(shard.revision),
    attempt: shard.spec.attempt,
    reason: status.reason,
    message: status.message,
    permanent: status.permanent,
    address: status.address,
    apiKey: leads(shard) ? shard.apiKey : "",
    logTail: [...status.logTail],
    inStateMs: BigInt(Math.round(status.inStateMs)),
    progress: status.progress,
    ...(pid === undefined ? {} : { pid }),
    ...(exit === undefined ? {} : { exit: encodeExit(exit) }),
    ...(load.running === undefined ? {} : { runningRequests: load.running }),
    ...(load.waiting === undefined ? {} : { waitingRequests: load.waiting }),
    ...(maxModelLen === undefined ? {} : { maxModelLen }),
  });
}

function encodeExit(exit: NonNullable<Status["exit"]>) {
  return create(ExitRecordSchema, {
    signal: exit.signal,
    outOfMemory: exit.outOfMemory,
    ...(exit.code === undefined ? {} : { code: exit.code }),
  });
}

export function encodeReport(shard: Shard, status: Status): ShardReport {
  return create(ShardReportSchema, {
    spec: specMessage(shard.spec),
    status: encodeStatus(shard, status),
  });
}

/** A shard that a newer agent left: its state is unknown here, and so it is told. */
export function encodeUnreadable(spec: ShardSpec, why: string): ShardReport {
  return create(ShardReportSchema, {
    spec: specMessage(spec),
    status: create(ShardStatusSchema, {
      shardId: spec.shardId,
      replicaId: spec.replicaId,
      attempt: spec.attempt,
      reason: "state_unreadable",
      message: `Its state on disk cannot be read: ${why}`,
    }),
  });
}

/** Stopped, for a shard that is not here: what control wants is so already. */
export function encodeAbsent(shardId: string, revision: Revision, reason: string): ShardStatus {
  return create(ShardStatusSchema, {
    shardId,
    state: encodeShardState("stopped"),
    revision: encodeRevision(revision),
    reason,
  });
}

export function encodeLoad(shardId: string, load: EngineLoad): ShardLoad {
  return create(ShardLoadSchema, {
    shardId,
    ...(load.running === undefined ? {} : { runningRequests: load.running }),
    ...(load.waiting === undefined ? {} : { waitingRequests: load.waiting }),
    ...(load.kvUsage === undefined ? {} : { kvUsage: load.kvUsage }),
  });
}

export function encodeResult(
  command: { readonly shardId: string; readonly revision: Revision },
  verdict: Verdict,
): CommandResult {
  const refused = verdict.kind === "refused";
  return create(CommandResultSchema, {
    revision: encodeRevision(command.revision),
    shardId: command.shardId,
    accepted: !refused,
    reason: refused ? verdict.reason : "",
    detail: refused ? verdict.detail : "",
  });
}
