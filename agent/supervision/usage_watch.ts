/** Keeps what the processes of this node's shards take of it. */
import { logger } from "@heddle/common/log";
import { isDue } from "../core/host/is_due.ts";
import { cpuPercent, type Taken, total, type UsageSample } from "../core/host/process_usage.ts";
import type { ProcessRef, Shard } from "../core/shard/shard.ts";
import { SingleFlight } from "../discovery/single_flight.ts";
import type { Launcher } from "../edge/launcher/launcher.ts";

const log = logger("agent", "usage");

/** It is for people, and each look reads every process of the node. */
const USAGE_AGE_MS = 15_000;
/** What was started since the last look is looked at sooner. */
const NEW_AGE_MS = 1_000;
/** A heartbeat waits no longer for it. */
const WAIT_MS = 1_000;

export interface UsageWatchOptions {
  readonly launcher: Pick<Launcher, "usage">;
  readonly shards: () => readonly Shard[];
  readonly now: () => number;
}

interface Samples {
  readonly before: UsageSample | undefined;
  readonly last: UsageSample;
}

export class UsageWatch {
  readonly #options: UsageWatchOptions;
  readonly #flight = new SingleFlight();
  #samples: ReadonlyMap<string, Samples> = new Map();
  #at: number | undefined;
  #complained = false;

  constructor(options: UsageWatchOptions) {
    this.#options = options;
  }

  /** Reads again what has grown old, and waits a second at most. Rejects only when `signal` aborts. */
  async refresh(signal: AbortSignal): Promise<void> {
    await this.#flight.within(WAIT_MS, signal, () => this.#read());
  }

  /** What a shard took by the last look; empty while nothing is known. */
  of(shard: Shard): Taken {
    const samples = processesOf(shard).map(({ handle }) => this.#samples.get(handle));
    const cpu = total(samples.map((each) => each && cpuPercent(each.before, each.last)));
    const memoryBytes = total(samples.map((each) => each?.last.usage.memoryBytes));
    return {
      ...(cpu === undefined ? {} : { cpuPercent: cpu }),
      ...(memoryBytes === undefined ? {} : { memoryBytes }),
    };
  }

  async #read(): Promise<void> {
    const { launcher, shards, now } = this.#options;
    const processes = shards().flatMap(processesOf);
    const known = processes.every(({ handle }) => this.#samples.has(handle));
    if (!isDue(this.#at, known ? USAGE_AGE_MS : NEW_AGE_MS, now())) return;
    this.#at = now();
    try {
      const usages = await launcher.usage(processes);
      const at = now();
      this.#samples = new Map(
        [...usages].map(([handle, usage]) => [
          handle,
          { before: this.#samples.get(handle)?.last, last: { usage, at } },
        ]),
      );
    } catch (error) {
      this.#samples = new Map();
      if (!this.#complained) log.warning("Cannot measure what engines take", { error });
      this.#complained = true;
    }
  }
}

function processesOf({ state }: Shard): readonly ProcessRef[] {
  return "processes" in state ? state.processes : [];
}
