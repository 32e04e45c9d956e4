/** The logs of shards' processes, each followed from its start to its end. */
import { logger } from "@heddle/common/log";
import { delay } from "@heddle/common/task";
import { diagnose, type Diagnosis } from "../../core/diagnosis/diagnose.ts";
import type { Evidence } from "../../core/diagnosis/evidence.ts";
import { redactLine } from "../../core/redact_line.ts";
import { boundLog, fileSize } from "./log_file.ts";
import { errorsFile, LogWatch } from "./log_watch.ts";

const log = logger("agent", "logs");

/** How often a running engine's log is read on, and its size looked at. */
const LOOK_MS = 500;
/** The same while it floods: a disk fills at a gigabyte a second. */
const LOOK_FLOOD_MS = 50;
const FLOOD_BYTES = 8 * 1024 * 1024;

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
    let size = 0;
    // The first look comes soon: what fails at once has said why, and what floods has begun to.
    let floods = true;
    while (!signal.aborted) {
      await delay(floods ? LOOK_FLOOD_MS : LOOK_MS, signal);
      // Also when it is the last time: what was printed since the last look is not cut by anybody else.
      try {
        await watch.look();
        const now = await fileSize(file) ?? 0;
        floods = now - size > FLOOD_BYTES;
        size = await boundLog(file, { beforeCut: () => watch.look() }) ? 0 : now;
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
