/**
 * A shard as its agent knows it. Each state holds only what is true in it, and the schema of the
 * states is their only home: what is in memory is what lies on disk.
 */
import { z } from "zod";
import type { Plain } from "@heddle/proto/plain";
import type { Misfit } from "@heddle/common/model/fits";
import type { Revision } from "@heddle/proto/revision";
import type { ShardSpec as WireShardSpec } from "@heddle/proto/gen/types";

export type ShardSpec = Plain<WireShardSpec>;

/** Milliseconds since 1970 by this node's clock. */
export type EpochMs = number;

/** A process that is going to be started; `handle` is what its launcher will find it by. */
const plannedSchema = z.object({
  name: z.string(),
  handle: z.string(),
  /** Path of what is run; absent where an older agent started it. */
  program: z.string().optional(),
});
export type PlannedProcess = z.output<typeof plannedSchema>;

/**
 * A process that was started. `pid` is of what leads its group; it and `started` identify the
 * process only together with `handle`. `mainPid` is the engine's own, where that is another one.
 */
const processSchema = plannedSchema.extend({
  pid: z.number(),
  started: z.string(),
  mainPid: z.number().optional(),
});
export type ProcessRef = z.output<typeof processSchema>;

const exitSchema = z.object({
  /** As a shell counts it: 128 + N for signal N. */
  code: z.number().optional(),
  /** "SIGKILL"; empty when the process exited by itself. */
  signal: z.string(),
  outOfMemory: z.boolean(),
});
export type ExitRecord = z.output<typeof exitSchema>;

const failureSchema = z.object({
  /** One of FailureReason; a string on disk, so that a newer agent's word is no corruption. */
  reason: z.string(),
  message: z.string(),
  permanent: z.boolean(),
  exit: exitSchema.optional(),
  logTail: z.array(z.string()),
});

/** Why a shard failed. */
export type FailureReason =
  | Misfit["reason"]
  | "model_file_damaged"
  | "engine_hung"
  | "engine_missing"
  | "engine_too_new"
  | "engine_too_old"
  | "launch_failed"
  | "launch_mode_unsupported"
  | "model_missing"
  | "model_source_unsupported"
  | "parallel_layout_unsupported"
  | "port_in_use"
  | "process_exited"
  | "startup_timeout"
  | "weights_not_fetched"
  | "state_corrupt"
  | "system_error";

export interface Failure extends z.output<typeof failureSchema> {
  reason: string;
}

const endingSchema = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("stopped"), reason: z.string(), message: z.string().optional() }),
  z.object({ kind: z.literal("failed"), failure: failureSchema }),
]);
export type Ending = z.output<typeof endingSchema>;

const processes = z.array(processSchema);
const epochMs = z.number();

export const shardStateSchema = z.discriminatedUnion("kind", [
  /** Checks are run and the processes are worked out; nothing has been started. */
  z.object({
    kind: z.literal("preparing"),
    deadline: epochMs,
    /** How far the weights are; absent while nothing is fetched. */
    progress: z.string().optional(),
  }),
  /** Being launched: of these processes some may run already. */
  z.object({ kind: z.literal("starting"), planned: z.array(plannedSchema), deadline: epochMs }),
  /** All run; the leader does not serve yet. */
  z.object({
    kind: z.literal("loading"),
    processes,
    deadline: epochMs,
    nextProbeAt: epochMs,
    progress: z.string(),
  }),
  z.object({
    kind: z.literal("ready"),
    processes,
    nextProbeAt: epochMs,
    failedProbes: z.number(),
    maxModelLen: z.number().optional(),
    /** Requests run, and the engine's counters have said the same since then. */
    stall: z.object({ progress: z.number(), since: epochMs }).optional(),
    /** Adopted and not yet seen to answer: by then it must. */
    recheckBy: epochMs.optional(),
    /** A probe has been under way since then. */
    askedAt: epochMs.optional(),
    /** It may hang: what of it is so, since when, and when that was last seen. */
    suspicion: z.object({
      what: z.enum(["stalled", "silent", "failed"]),
      since: epochMs,
      seenAt: epochMs,
    }).optional(),
  }),
  /** Runs, but does not do its work as it should. */
  z.object({
    kind: z.literal("degraded"),
    processes,
    nextProbeAt: epochMs,
    reason: z.string(),
    message: z.string(),
    maxModelLen: z.number().optional(),
    stall: z.object({ progress: z.number(), since: epochMs }).optional(),
    /** It has given no token since then, though asked; absent while that is not certain. */
    hungSince: epochMs.optional(),
    /** What is wrong with links that it uses, whatever else is; absent: nothing that is known. */
    linkFault: z.object({ reason: z.string(), message: z.string() }).optional(),
  }),
  /** Finishes what it has; told to end when idle or at `until`. */
  z.object({
    kind: z.literal("draining"),
    processes,
    reason: z.string(),
    until: epochMs,
    nextMeasureAt: epochMs,
    maxModelLen: z.number().optional(),
  }),
  /** Told to end. Not over before nothing of it is left. */
  z.object({
    kind: z.literal("stopping"),
    /** Launches under way, whose processes will have to end too. */
    planned: z.array(plannedSchema),
    processes,
    ending: endingSchema,
    killAt: epochMs,
    killed: z.boolean(),
    nextCountAt: epochMs,
    /** Pids that live on though they were killed; empty while that may still be normal. */
    survivors: z.array(z.number()),
    /** The same in words. */
    survivorWords: z.array(z.string()).optional(),
    /** Nothing of it runs; until then its GPUs have time to give their memory back. */
    freeBy: epochMs.optional(),
  }),
  z.object({ kind: z.literal("stopped"), reason: z.string(), message: z.string().optional() }),
  z.object({ kind: z.literal("failed"), failure: failureSchema }),
]);
export type ShardState = z.output<typeof shardStateSchema>;
export type StateKind = ShardState["kind"];
export type StateOf<K extends StateKind> = Extract<ShardState, { kind: K }>;

export interface Shard {
  readonly spec: ShardSpec;
  /** Of the command that made it what it is. */
  readonly revision: Revision;
  /** What the engine demands; empty on ranks that serve no HTTP. */
  readonly apiKey: string;
  /** When it entered its state. */
  readonly since: EpochMs;
  readonly state: ShardState;
}

/** True for the rank that serves HTTP. */
export function leads(shard: { readonly spec: ShardSpec }): boolean {
  return shard.spec.rank === 0;
}

/** True when nothing of the shard runs or will run. */
export function ended(state: ShardState): state is StateOf<"stopped"> | StateOf<"failed"> {
  return state.kind === "stopped" || state.kind === "failed";
}

/** Every handle the shard may have a process under. */
export function handlesOf(state: ShardState): readonly string[] {
  switch (state.kind) {
    case "preparing":
    case "stopped":
    case "failed":
      return [];
    case "starting":
      return state.planned.map(({ handle }) => handle);
    case "stopping":
      return [...state.planned, ...state.processes].map(({ handle }) => handle);
    default:
      return state.processes.map(({ handle }) => handle);
  }
}
