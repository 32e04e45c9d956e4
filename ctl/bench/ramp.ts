/**
 * The search for the load at which most requests a second keep the promise. Goodput rises with load
 * until the promise breaks, and then falls: so the load is doubled until that is behind us, narrowed
 * down around the best, and the best is measured again until it repeats. Pure.
 */
import type { Level } from "./measured.ts";

export interface RampLimits {
  readonly concurrencyMax: number;
}

export type RampStep =
  | { readonly kind: "measure"; readonly concurrency: number }
  | { readonly kind: "done"; readonly result: RampResult };

export interface RampResult {
  /** The measurement in the middle of those of the best load; undefined when nothing was kept. */
  readonly best: Level | undefined;
  /** Whether repeated measurements agreed. */
  readonly stable: boolean;
  /** The largest difference between them, as a part of their median. */
  readonly spread: number;
  /** Goodput did not fall up to the largest load that was allowed. */
  readonly open: boolean;
}

/** Goodput that has fallen to this part of the best is past the peak, and not noise. */
const FALLEN = 0.85;
/** Doubling the load twice for less than this is not worth the wait of those who are served. */
const GAIN_MIN = 0.03;
/** Loads this close to the largest goodput are as good; the smallest of them is the best. */
const AS_GOOD = 0.98;
/** A load at which more than half break the promise tells nothing about a larger one. */
const WITHIN_MIN = 0.5;
/** Neighbours closer than this to the best cannot be told from it. */
const RESOLUTION = 0.13;
const REPEATS_MIN = 3;
const REPEATS_MAX = 6;
const SPREAD_MAX = 0.05;
/** Where nothing repeats, the best moves about, and the search would go on after it. */
const MEASUREMENTS_MAX = 40;

export function nextStep(levels: readonly Level[], { concurrencyMax }: RampLimits): RampStep {
  const byLoad = medians(levels);
  const loads = [...byLoad.keys()].sort((a, b) => a - b);
  const largest = loads.at(-1);
  if (largest === undefined) return { kind: "measure", concurrency: 1 };
  const best = bestOf(byLoad);
  if (best === undefined) return done(undefined, levels, false);

  const last = byLoad.get(largest);
  const past = last === undefined || last.within < WITHIN_MIN ||
    last.goodput < FALLEN * best.goodput || isFlat(byLoad, loads);
  if (levels.length >= MEASUREMENTS_MAX) return done(best, levels, !past);
  if (!past && largest < concurrencyMax) {
    return { kind: "measure", concurrency: Math.min(2 * largest, concurrencyMax) };
  }
  const between = gapBeside(best.concurrency, loads);
  if (between !== undefined) return { kind: "measure", concurrency: between };

  const again = levels.filter(({ concurrency }) => concurrency === best.concurrency);
  const settled = again.length >= REPEATS_MIN && spreadOf(again) <= SPREAD_MAX;
  if (!settled && again.length < REPEATS_MAX) {
    return { kind: "measure", concurrency: best.concurrency };
  }
  return done(best, levels, !past);
}

/** The two largest loads gave hardly more than those before them. */
function isFlat(byLoad: ReadonlyMap<number, Level>, loads: readonly number[]): boolean {
  const rates = loads.map((load) => byLoad.get(load)?.goodput ?? 0);
  const before = rates.slice(0, -2);
  return before.length > 0 &&
    Math.max(...rates.slice(-2)) < (1 + GAIN_MIN) * Math.max(...before);
}

/** The middle of the wider gap beside the best load; undefined when both are narrow. */
function gapBeside(best: number, loads: readonly number[]): number | undefined {
  const narrow = Math.max(1, RESOLUTION * best);
  const lower = loads.findLast((load) => load < best);
  const upper = loads.find((load) => load > best);
  const gaps = [
    ...(upper === undefined ? [] : [{ from: best, to: upper }]),
    ...(lower === undefined ? [] : [{ from: lower, to: best }]),
  ].filter(({ from, to }) => to - from > narrow).sort((a, b) => (b.to - b.from) - (a.to - a.from));
  const [widest] = gaps;
  return widest && Math.round((widest.from + widest.to) / 2);
}

/** By load, the measurement in the middle. */
function medians(levels: readonly Level[]): ReadonlyMap<number, Level> {
  const found = new Map<number, Level>();
  for (const [load, same] of Map.groupBy(levels, ({ concurrency }) => concurrency)) {
    const sorted = same.toSorted((a, b) => a.goodput - b.goodput);
    const middle = sorted[Math.floor((sorted.length - 1) / 2)];
    if (middle !== undefined) found.set(load, middle);
  }
  return found;
}

/** Undefined when no load kept any promise. */
function bestOf(byLoad: ReadonlyMap<number, Level>): Level | undefined {
  const levels = [...byLoad.values()].sort((a, b) => a.concurrency - b.concurrency);
  const most = Math.max(...levels.map(({ goodput }) => goodput));
  return most > 0 ? levels.find(({ goodput }) => goodput >= AS_GOOD * most) : undefined;
}

function spreadOf(levels: readonly Level[]): number {
  const rates = levels.map(({ goodput }) => goodput).sort((a, b) => a - b);
  const middle = rates[Math.floor((rates.length - 1) / 2)] ?? 0;
  return middle === 0 ? 0 : ((rates.at(-1) ?? 0) - (rates[0] ?? 0)) / middle;
}

function done(best: Level | undefined, levels: readonly Level[], open: boolean): RampStep {
  const again = levels.filter(({ concurrency }) => concurrency === best?.concurrency);
  const spread = spreadOf(again);
  const stable = again.length >= REPEATS_MIN && spread <= SPREAD_MAX;
  return { kind: "done", result: { best, stable, spread, open } };
}
