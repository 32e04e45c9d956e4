/** The logs of shards' processes, each followed from its start to its end. */
import { logger } from "@heddle/common/log";
import { delay } from "@heddle/common/task";
import { diagnose, type Diagnosis } from "../../core/diagnosis/diagnose.ts";
import type { Evidence } from "../../core/diagnosis/evidence.ts";
import { redactLine } from "../../core/redact_line.ts";
import { boundLog } from "./log_file.ts";
import { errorsFile, LogWatch } from "./log_watch.ts";

const log = logger("agent", "logs");

/** How often a running engine's log is read on, and its size looked at. */
const LOOK_MS = 500;

export interface FollowedProcess {
  readonly name: string;
  readonly handle: string;
}

export class ShardLogs {
  /** By handle. */
  readonly #watches = new Map<string, LogWatch>();

  /** Follows a log until `signal` aborts, and keeps the file bounded. Never rejects. */
  async follow(
    handle: string,
    files: {
      readonly log: string;
      readonly directory: string;
      readonly secrets: readonly string[];
    },
    signal: AbortSignal,
  ): Promise<void> {
    const { log: file, directory, secrets } = files;
    const watch = new LogWatch(
      { log: file, errors: errorsFile(directory) },
      (line) => redactLine(line, secrets),
    );
    this.#watches.set(handle, watch);
    while (!signal.aborted) {
      await delay(LOOK_MS, signal);
      if (signal.aborted) return;
      try {
        await watch.look();
        await boundLog(file);
      } catch (error) {
        log.warning("Cannot follow a log", { file, error });
      }
    }
  }

  /** Why the shard that these are the processes of failed; the last of them is the server. */
  async diagnose(
    processes: readonly FollowedProcess[],
    evidence: Evidence,
  ): Promise<Diagnosis | undefined> {
    const logs = [];
    for (const { name, handle } of processes) {
      const watch = this.#watches.get(handle);
      if (watch === undefined) continue;
      try {
        await watch.end();
      } catch (error) {
        log.warning("Cannot read a log to its end", { process: name, error });
      }
      logs.push({ process: name, digest: watch.digest });
    }
    return diagnose(logs, evidence);
  }

  /** Forgets the log of a process that has ended. */
  forget(handle: string): void {
    this.#watches.delete(handle);
  }
}
