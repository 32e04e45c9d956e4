/** Requests per model since the last report that control has, and those that wait. */
import { bucketOf } from "@heddle/proto/first_content_times";
import type { WaitingCount } from "./core/admission/admission.ts";
import type { Band } from "./core/admission/band.ts";
import { missedSlo, type Slo } from "./core/fleet/slo.ts";
import type { UsageRecord } from "./core/request/usage_record.ts";

export interface ModelLoad {
  readonly model: string;
  readonly waiting: number;
  /** Of those that wait, the ones that wait for room. */
  readonly queued: Readonly<Record<Band, number>>;
  readonly requests: number;
  /** Those that a replica was to blame for. */
  readonly failures: number;
  /** Those that missed what is promised of the model. */
  readonly sloMisses: number;
  /** Of streams, in the buckets that routers and control share. */
  readonly firstContent: readonly number[];
  /** Of answers whose engine says how much of that it had in its cache; others are not in it. */
  readonly promptTokens: number;
  readonly cachedTokens: number;
}

interface Counts {
  requests: number;
  failures: number;
  sloMisses: number;
  /** By bucket. */
  readonly firstContent: Map<number, number>;
  promptTokens: number;
  cachedTokens: number;
}

type Ended = Pick<
  UsageRecord,
  "model" | "outcome" | "stream" | "durationMs" | "firstContentMs" | "usage"
>;

/** Requests that wait. */
interface Waiting {
  /** By model: held while it is asleep, or queued for room. */
  readonly waiting: ReadonlyMap<string, number>;
  /** Only those that are queued for room. */
  queued(): readonly WaitingCount[];
}

export class ModelLoads {
  readonly #counts = new Map<string, Counts>();
  readonly #sloOf: (model: string) => Slo | undefined;

  /** `sloOf` gives what is promised of a model now. */
  constructor(sloOf: (model: string) => Slo | undefined) {
    this.#sloOf = sloOf;
  }

  /** Counts one ended request; one that reached no known model is nobody's load. */
  count(record: Ended): void {
    const { model, outcome, stream, firstContentMs, usage } = record;
    if (model === "") return;
    const counted = this.#counts.get(model) ?? noCounts();
    counted.requests++;
    if (outcome.startsWith("engine_") && outcome !== "engine_refused") counted.failures++;
    if (outcome === "stream_broken") counted.failures++;
    const slo = this.#sloOf(model);
    if (slo !== undefined && missedSlo(slo, record)) counted.sloMisses++;
    // What is no stream has its first content with its last.
    if (stream && firstContentMs !== undefined) add(counted.firstContent, bucketOf(firstContentMs));
    if (usage?.cachedTokens !== undefined) {
      counted.promptTokens += usage.promptTokens;
      counted.cachedTokens += Math.min(usage.cachedTokens, usage.promptTokens);
    }
    this.#counts.set(model, counted);
  }

  /** What is to be reported, for models with anything to tell. */
  since(waiting: Waiting): readonly ModelLoad[] {
    const queued = queuedByModel(waiting.queued());
    const models = new Set([...this.#counts.keys(), ...waiting.waiting.keys()]);
    return [...models].map((model) => {
      const { firstContent, ...counts } = this.#counts.get(model) ?? noCounts();
      return {
        model,
        waiting: waiting.waiting.get(model) ?? 0,
        queued: queued.get(model) ?? noneQueued(),
        ...counts,
        firstContent: columnOf(firstContent),
      };
    });
  }

  /** Takes away what a report carried; what came meanwhile stays for the next one. */
  reported(loads: readonly ModelLoad[]): void {
    for (const load of loads) {
      const counted = this.#counts.get(load.model);
      if (counted === undefined) continue;
      counted.requests -= load.requests;
      counted.failures -= load.failures;
      counted.sloMisses -= load.sloMisses;
      counted.promptTokens -= load.promptTokens;
      counted.cachedTokens -= load.cachedTokens;
      for (const [bucket, count] of load.firstContent.entries()) {
        if (count > 0) add(counted.firstContent, bucket, -count);
      }
      // All that is counted is of requests, so nothing is left of it.
      if (counted.requests === 0) this.#counts.delete(load.model);
    }
  }
}

function noCounts(): Counts {
  return {
    requests: 0,
    failures: 0,
    sloMisses: 0,
    firstContent: new Map(),
    promptTokens: 0,
    cachedTokens: 0,
  };
}

function noneQueued(): Record<Band, number> {
  return { platinum: 0, gold: 0, silver: 0, bronze: 0 };
}

function queuedByModel(counts: readonly WaitingCount[]): ReadonlyMap<string, Record<Band, number>> {
  const queued = new Map<string, Record<Band, number>>();
  for (const { model, band, requests } of counts) {
    const bands = queued.get(model) ?? noneQueued();
    bands[band] += requests;
    queued.set(model, bands);
  }
  return queued;
}

function add(counts: Map<number, number>, bucket: number, count = 1): void {
  counts.set(bucket, (counts.get(bucket) ?? 0) + count);
}

function columnOf(counts: ReadonlyMap<number, number>): readonly number[] {
  const last = Math.max(-1, ...[...counts].filter(([, count]) => count > 0).map(([at]) => at));
  return Array.from({ length: last + 1 }, (_, bucket) => counts.get(bucket) ?? 0);
}
