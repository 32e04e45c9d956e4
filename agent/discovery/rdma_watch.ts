/** Keeps what sysfs says about RDMA adapters, and how their links have fared. */

import type { PortLink } from "../core/health/link_fault.ts";
import {
  afterReading,
  linkProblems,
  type LinkRecord,
  wentDown,
} from "../core/health/link_watch.ts";
import { isDue } from "../core/host/is_due.ts";
import type { NodeProblem } from "../core/problem.ts";
import { surveyHcas } from "../core/rdma/hca.ts";
import type { RdmaReading } from "../core/rdma/rdma_survey.ts";
import { readRdma } from "../edge/hardware/infiniband.ts";
import { readPortCounters } from "../edge/hardware/port_counters.ts";
import type { Sysfs } from "../edge/hardware/sysfs.ts";

/** Counters tell of minutes, and each reading is a question to the adapter's firmware. */
const COUNTER_AGE_MS = 30_000;

export class RdmaWatch {
  readonly #sysfs: Sysfs;
  readonly #now: () => number;
  readonly #links = new Map<string, LinkRecord>();
  /** Adapters whose counters the kernel refuses to read. */
  readonly #refusing = new Set<string>();
  #countedAt: number | undefined;
  #reading: RdmaReading = { kind: "missing" };

  constructor(sysfs: Sysfs, now: () => number) {
    this.#sysfs = sysfs;
    this.#now = now;
  }

  /** What was read last. */
  get reading(): RdmaReading {
    return this.#reading;
  }

  /** Links that had trouble lately. */
  problems(): readonly NodeProblem[] {
    return linkProblems(this.#links, this.#now());
  }

  /** The ports that carry traffic of GPUs, by `mlx5_0:1`; undefined: they cannot be read. */
  ports(): ReadonlyMap<string, PortLink> | undefined {
    if (this.#reading.kind !== "devices") return undefined;
    return new Map(
      surveyHcas(this.#reading.devices).ports.map(({ name, port, problems }) => [
        `${name}:${port}`,
        {
          down: problems[0]?.detail,
          wentDown: wentDown(this.#links.get(labelOf(name, port)), this.#now()),
        },
      ]),
    );
  }

  /** Reads the adapters, and their counters when that was long ago. Only one at a time. */
  async refresh(): Promise<void> {
    this.#reading = await readRdma(this.#sysfs);
    if (!isDue(this.#countedAt, COUNTER_AGE_MS, this.#now())) return;
    this.#countedAt = this.#now();
    const devices = this.#reading.kind === "devices" ? this.#reading.devices : [];
    for (const { name, port, active } of surveyHcas(devices).ports) {
      if (!active || this.#refusing.has(name)) continue;
      const counters = await readPortCounters(this.#sysfs, name, port);
      const label = labelOf(name, port);
      if (counters === undefined) this.#refusing.add(name);
      else this.#links.set(label, afterReading(this.#links.get(label), counters, this.#now()));
    }
  }
}

function labelOf(name: string, port: number): string {
  return `${name} port ${port}`;
}
