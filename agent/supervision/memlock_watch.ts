/** What engines may lock, looked at while they run: once they have failed nobody can tell any more. */
import { logger } from "@heddle/common/log";
import { spawnTask } from "@heddle/common/task";
import type { ProcessRef, Shard } from "../core/shard/shard.ts";
import type { LauncherKind } from "../edge/launcher/choose.ts";
import { memlockWarning, readMemlock } from "../edge/launcher/limits.ts";

const log = logger("agent");

/** More shards than a node ever has at once; of those before nobody asks. */
const SHARDS_MAX = 256;

export class MemlockWatch {
  readonly #shim: string;
  readonly #launcher: LauncherKind;
  /** By shard: the least of its processes. */
  readonly #bytes = new Map<string, number>();

  /** `shim` is the absolute path of heddle-shim. */
  constructor(shim: string, launcher: LauncherKind) {
    this.#shim = shim;
    this.#launcher = launcher;
  }

  /** Looks at a process that runs, in its own time, and warns where a shard with adapters has too little. */
  look(shard: Shard, process: ProcessRef): void {
    spawnTask("memlock of an engine", () => this.#look(shard, process));
  }

  /** Bytes that the shard's engine may lock, Infinity without a limit; undefined: not known. */
  of(shardId: string): number | undefined {
    return this.#bytes.get(shardId);
  }

  // Nobody waits for it, so it may take as long as the shim itself may.
  async #read(pid: number): Promise<number | undefined> {
    try {
      return await readMemlock(this.#shim, pid);
    } catch (error) {
      log.warning("Cannot tell what an engine may lock", { pid, error });
      return undefined;
    }
  }

  async #look({ spec }: Shard, { pid, mainPid = pid }: ProcessRef): Promise<void> {
    const bytes = await this.#read(mainPid);
    if (bytes === undefined) return;
    const before = this.#bytes.get(spec.shardId);
    this.#bytes.delete(spec.shardId);
    this.#bytes.set(spec.shardId, Math.min(bytes, before ?? Infinity));
    for (const oldest of this.#bytes.keys()) {
      if (this.#bytes.size <= SHARDS_MAX) break;
      this.#bytes.delete(oldest);
    }
    const words = spec.hcas.length === 0 ? undefined : memlockWarning(bytes, this.#launcher);
    if (words !== undefined && (before === undefined || before > bytes)) {
      log.warning(words, { shard: spec.shardId });
    }
  }
}
