/** What routers say of a model, added up to one sample. Pure. */
import { addCounts, percentileMs } from "@heddle/proto/first_content_times";
import type { ModelLoad } from "@heddle/proto/gen/router";
import type { Router } from "../../core/world.ts";
import type { TrafficSample } from "./wire.ts";

/** What a router says with a report; what it leaves out it does not measure. */
export type ReportedLoad = Pick<
  ModelLoad,
  "model" | "requests" | "failures" | "sloMisses" | "firstContent" | "promptCache"
>;

/** Answered since the last sample. */
export interface Counts {
  requests: number;
  failures: number;
  sloMisses: number;
  /** Streams, in the buckets that routers and control share. */
  readonly firstContent: number[];
  /** Of answers whose engine says how much of that it had in its cache. */
  promptTokens: number;
  cachedTokens: number;
}

export function noCounts(): Counts {
  return {
    requests: 0,
    failures: 0,
    sloMisses: 0,
    firstContent: [],
    promptTokens: 0,
    cachedTokens: 0,
  };
}

export function addReport(sum: Counts, load: ReportedLoad): void {
  addCounted(sum, {
    requests: load.requests,
    failures: load.failures,
    sloMisses: load.sloMisses ?? 0,
    firstContent: load.firstContent?.counts ?? [],
    promptTokens: Number(load.promptCache?.promptTokens ?? 0n),
    cachedTokens: Number(load.promptCache?.cachedTokens ?? 0n),
  });
}

export function addCounted(sum: Counts, counts: Counts): void {
  sum.requests += counts.requests;
  sum.failures += counts.failures;
  sum.sloMisses += counts.sloMisses;
  addCounts(sum.firstContent, counts.firstContent);
  sum.promptTokens += counts.promptTokens;
  sum.cachedTokens += counts.cachedTokens;
}

type Bands = Pick<TrafficSample, "platinum" | "gold" | "silver" | "bronze">;

/** What there is of a model at the moment. */
export type Held = Pick<TrafficSample, "inFlight" | "waiting"> & Bands;

const NO_BANDS: Bands = { platinum: 0, gold: 0, silver: 0, bronze: 0 };
const UNKNOWN_BANDS: Bands = { platinum: null, gold: null, silver: null, bronze: null };

/** Where a sum begins. */
export const NOTHING_HELD: Held = { inFlight: 0, waiting: 0, ...NO_BANDS };

export function addHeld(sum: Held, held: Held): Held {
  return {
    inFlight: sum.inFlight + held.inFlight,
    waiting: sum.waiting + held.waiting,
    ...addBands(sum, held),
  };
}

// A sum of which a part is unknown is unknown.
function addBands(sum: Bands, bands: Bands): Bands {
  const add = (a: number | null, b: number | null) => a === null || b === null ? null : a + b;
  return {
    platinum: add(sum.platinum, bands.platinum),
    gold: add(sum.gold, bands.gold),
    silver: add(sum.silver, bands.silver),
    bronze: add(sum.bronze, bands.bronze),
  };
}

/** What waits for a model at these routers. Without any, nobody knows of bands. */
export function waitingAt(
  routers: readonly Pick<Router, "models">[],
  model: string,
): Omit<Held, "inFlight"> {
  let waiting = 0;
  let bands = routers.length === 0 ? UNKNOWN_BANDS : NO_BANDS;
  for (const { models } of routers) {
    const load = models.get(model);
    waiting += load?.waiting ?? 0;
    // Where nothing waits, nothing does in any band, also at a router that does not tell bands.
    if (load !== undefined && load.waiting > 0) {
      bands = addBands(bands, load.queued ?? UNKNOWN_BANDS);
    }
  }
  return { waiting, ...bands };
}

/** A sample of what was counted in so many seconds, and of what there is `now`, in ms. */
export function sampleOf({ now, seconds, counts, held }: {
  readonly now: number;
  readonly seconds: number;
  readonly counts: Counts;
  readonly held: Held;
}): TrafficSample {
  const { firstContent, promptTokens, cachedTokens } = counts;
  const rate = (count: number) => thousandths(count / seconds);
  const percentile = (share: number) => {
    const ms = percentileMs(firstContent, share);
    return ms === undefined ? null : Math.round(ms);
  };
  return {
    ...held,
    atS: Math.round(now / 1_000),
    requests: rate(counts.requests),
    failures: rate(counts.failures),
    sloMisses: rate(counts.sloMisses),
    ttftP50Ms: percentile(0.5),
    ttftP99Ms: percentile(0.99),
    cacheShare: promptTokens === 0 ? null : thousandths(cachedTokens / promptTokens),
  };
}

function thousandths(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
