/** Requests per model since the last report that control has, and those that wait. */
import type { UsageRecord } from "./core/request/usage_record.ts";

export interface ModelLoad {
  readonly model: string;
  readonly waiting: number;
  readonly requests: number;
  /** Those that a replica was to blame for. */
  readonly failures: number;
}

export class ModelLoads {
  readonly #counts = new Map<string, { requests: number; failures: number }>();

  /** Counts one ended request; one that reached no known model is nobody's load. */
  count({ model, outcome }: UsageRecord): void {
    if (model === "") return;
    const counted = this.#counts.get(model) ?? { requests: 0, failures: 0 };
    counted.requests++;
    if (outcome.startsWith("engine_") && outcome !== "engine_refused") counted.failures++;
    if (outcome === "stream_broken") counted.failures++;
    this.#counts.set(model, counted);
  }

  /** What is to be reported, for models with anything to tell. */
  since(waiting: ReadonlyMap<string, number>): readonly ModelLoad[] {
    const models = new Set([...this.#counts.keys(), ...waiting.keys()]);
    return [...models].map((model) => ({
      model,
      waiting: waiting.get(model) ?? 0,
      ...(this.#counts.get(model) ?? { requests: 0, failures: 0 }),
    }));
  }

  /** Takes away what a report carried; what came meanwhile stays for the next one. */
  reported(loads: readonly ModelLoad[]): void {
    for (const { model, requests, failures } of loads) {
      const counted = this.#counts.get(model);
      if (counted === undefined) continue;
      counted.requests -= requests;
      counted.failures -= failures;
      if (counted.requests === 0 && counted.failures === 0) this.#counts.delete(model);
    }
  }
}
