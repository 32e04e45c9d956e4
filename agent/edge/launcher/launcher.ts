/**
 * How processes of engines are started, found, watched and ended. There are two kinds of launcher,
 * and one contract (`contract.ts`) that both are held to. What a launcher started outlives the agent.
 */
import type { ProcessUsage } from "../../core/host/process_usage.ts";
import type { ExitRecord, PlannedProcess, ProcessRef } from "../../core/shard/shard.ts";

export type Signal = "SIGTERM" | "SIGKILL";

/** A process to be started. */
export interface LaunchRequest extends PlannedProcess {
  /** Folder that this process has for itself; it exists, with mode 0700. */
  readonly directory: string;
  readonly argv: readonly string[];
  /** All of its environment. */
  readonly env: Readonly<Record<string, string>>;
}

/** What carries our mark and lives. */
export interface LiveProcess {
  readonly handle: string;
  readonly pid: number;
  readonly started: string;
  readonly mainPid?: number;
  /** The folder it was started with. */
  readonly directory: string;
  /** False: what watched it is gone, and only parts of it are left. */
  readonly whole: boolean;
}

/** One of the processes that belong to a process. */
export interface LiveMember {
  readonly pid: number;
  /** "pid 811 (python3, uninterruptible: it waits for a driver or a disk)" */
  readonly words: string;
}

export interface Launcher {
  /** Starts a process and returns once it runs. Throws `system` when it cannot be started. */
  start(request: LaunchRequest): Promise<ProcessRef>;
  /** Everything of this agent's that lives, whoever started it. */
  list(): Promise<readonly LiveProcess[]>;
  /**
   * Sends a signal: SIGTERM to the main process alone, SIGKILL to all that belongs to it. "gone"
   * when there is nothing to send it to. A process that only bears the same pid is never touched.
   */
  signal(process: ProcessRef, signal: Signal): Promise<"sent" | "gone">;
  /** Pids of all that lives and belongs to a process, whether it lives itself or not. */
  members(process: ProcessRef): Promise<readonly number[]>;
  /** The same, each with its name and its state in words, for those that do not end. */
  describe(process: ProcessRef): Promise<readonly LiveMember[]>;
  /**
   * Resolves when the process is gone: with its record, or undefined when it left none. Also for
   * what an earlier agent started. Rejects only when `signal` aborts.
   */
  exit(
    process: ProcessRef,
    directory: string,
    signal: AbortSignal,
  ): Promise<ExitRecord | undefined>;
  /**
   * What each of these processes takes, with all that belongs to it, by handle. One that is not in
   * the answer is gone, or cannot be measured here.
   */
  usage(processes: readonly ProcessRef[]): Promise<ReadonlyMap<string, ProcessUsage>>;
  /** File that has the output of what runs in `directory`. */
  logFile(directory: string): string;
}
