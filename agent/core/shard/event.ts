/** What happens to a shard, and what its state machine wants done about it. */
import type { ProbeOutcome } from "@heddle/common/engine/probe_outcome";
import type { Revision } from "@heddle/proto/revision";
import type { GpuUse } from "../gpu/gpu_release.ts";
import type { Diagnosis } from "../diagnosis/diagnose.ts";
import type { ExitRecord, Failure, PlannedProcess, ProcessRef } from "./shard.ts";

/** The engine's own numbers; absent is unknown. */
export interface EngineLoad {
  readonly running?: number;
  readonly waiting?: number;
  /** Share of the KV cache in use, 0 to 1. */
  readonly kvUsage?: number;
  /** Grows with the work that is done (tokens, steps); says nothing by itself. */
  readonly progress?: number;
}

export type ShardEvent =
  | { readonly type: "prepared"; readonly processes: readonly PlannedProcess[] }
  | { readonly type: "prepare_failed"; readonly failure: Failure }
  /** Weights are on their way; how far, in words. */
  | { readonly type: "fetching"; readonly progress: string }
  | { readonly type: "launched"; readonly processes: readonly ProcessRef[] }
  /** Those that did start are named too: they have to end. */
  | {
    readonly type: "launch_failed";
    readonly processes: readonly ProcessRef[];
    readonly failure: Failure;
  }
  | {
    readonly type: "exited";
    readonly handle: string;
    /** Absent: it is gone and left no record. */
    readonly exit?: ExitRecord;
    readonly logTail: readonly string[];
    /** What the logs of the shard's processes, and the facts about them, say it is. */
    readonly diagnosis?: Diagnosis;
  }
  /** `load` as it was just before; absent when it was not asked for. `after`: once no token came. */
  | {
    readonly type: "probed";
    readonly outcome: ProbeOutcome;
    readonly load?: EngineLoad;
    readonly after?: EngineLoad;
  }
  | { readonly type: "measured"; readonly load: EngineLoad }
  /** What of the shard still lives. */
  | {
    readonly type: "counted";
    readonly pids: readonly number[];
    /** Each of them in words. */
    readonly words?: readonly string[];
  }
  /** Which of the shard's GPUs still have memory in use; absent: that cannot be known. */
  | { readonly type: "gpus_checked"; readonly unreleased?: readonly GpuUse[] }
  /** Its links were looked at; absent: they are as they should be. Unknown is no event. */
  | {
    readonly type: "links_judged";
    readonly fault?: { readonly reason: string; readonly message: string };
  }
  | {
    readonly type: "stop";
    readonly revision: Revision;
    readonly reason: string;
    readonly graceMs: number;
  }
  /** Time passed. */
  | { readonly type: "tick" }
  /** The agent started again; `live` is what it found of the shard. */
  | {
    readonly type: "resumed";
    readonly live: readonly ProcessRef[];
    /** How long an engine that was ready has to answer, in ms. */
    readonly adoptReadyMs: number;
  };

export type Effect =
  /** Check, and work out the processes: `prepared` or `prepare_failed`. */
  | { readonly type: "prepare" }
  /** Start them in this order: `launched` or `launch_failed`. */
  | { readonly type: "launch"; readonly processes: readonly PlannedProcess[] }
  /** `probed`; with `token` only when that includes one generated token. */
  | { readonly type: "probe"; readonly token: "always" | "when_idle" }
  /** Ask the engine for its load: `measured`. */
  | { readonly type: "measure" }
  /** SIGTERM to the engine itself, which knows how to end its workers. */
  | { readonly type: "terminate"; readonly processes: readonly ProcessRef[] }
  /** SIGKILL to all that belongs to these processes. */
  | { readonly type: "kill"; readonly processes: readonly ProcessRef[] }
  /** See what still lives: `counted`. */
  | { readonly type: "count"; readonly processes: readonly ProcessRef[] }
  /** See whether the shard's GPUs are free again: `gpus_checked`. */
  | { readonly type: "check_gpus" };

export type EffectOf<T extends Effect["type"]> = Extract<Effect, { type: T }>;
