/** Requests per model since the last report that control has, and those that wait. */
import { missedSlo, type Slo } from "./core/fleet/slo.ts";
import type { UsageRecord } from "./core/request/usage_record.ts";

export interface ModelLoad {
  readonly model: string;
  readonly waiting: number;
  readonly requests: number;
  /** Those that a replica was to blame for. */
  readonly failures: number;
  /** Those that missed what is promised of the model. */
  readonly sloMisses: number;
}

interface Counts {
  requests: number;
  failures: number;
  sloMisses: number;
}

export class ModelLoads {
  readonly #counts = new Map<string, Counts>();
  readonly #sloOf: (model: string) => Slo | undefined;

  /** `sloOf` gives what is promised of a model now. */
  constructor(sloOf: (model: string) => Slo | undefined) {
    this.#sloOf = sloOf;
  }

  /** Counts one ended request; one that reached no known model is nobody's load. */
  count(record: UsageRecord): void {
    const { model, outcome } = record;
    if (model === "") return;
    const counted = this.#counts.get(model) ?? { requests: 0, failures: 0, sloMisses: 0 };
    counted.requests++;
    if (outcome.startsWith("engine_") && outcome !== "engine_refused") counted.failures++;
    if (outcome === "stream_broken") counted.failures++;
    const slo = this.#sloOf(model);
    if (slo !== undefined && missedSlo(slo, record)) counted.sloMisses++;
    this.#counts.set(model, counted);
  }

  /** What is to be reported, for models with anything to tell. */
  since(waiting: ReadonlyMap<string, number>): readonly ModelLoad[] {
    const models = new Set([...this.#counts.keys(), ...waiting.keys()]);
    return [...models].map((model) => ({
      model,
      waiting: waiting.get(model) ?? 0,
      ...(this.#counts.get(model) ?? { requests: 0, failures: 0, sloMisses: 0 }),
    }));
  }

  /** Takes away what a report carried; what came meanwhile stays for the next one. */
  reported(loads: readonly ModelLoad[]): void {
    for (const { model, requests, failures, sloMisses } of loads) {
      const counted = this.#counts.get(model);
      if (counted === undefined) continue;
      counted.requests -= requests;
      counted.failures -= failures;
      counted.sloMisses -= sloMisses;
      // Failures and misses are of requests, so nothing is left of them.
      if (counted.requests === 0) this.#counts.delete(model);
    }
  }
}
