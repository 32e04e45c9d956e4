/**
 * How good each endpoint is for a request, from several points of view. A scorer gives a number in
 * [0,1] for each candidate, 1 for the best, and NaN where it does not know; what each one counts is
 * for the configuration to say. A new scorer is a file and a line in `SCORERS`.
 */
import type { Candidate, Wanted } from "./candidate.ts";
import type { Scorer } from "./scorer.ts";
import { inFlight } from "./scorers/in_flight.ts";
import { kvCache } from "./scorers/kv_cache.ts";
import { latency } from "./scorers/latency.ts";
import { prefix } from "./scorers/prefix.ts";
import { queue } from "./scorers/queue.ts";
import { reservedTokens } from "./scorers/reserved_tokens.ts";
import { session } from "./scorers/session.ts";

const SCORERS = {
  queue,
  kv_cache: kvCache,
  in_flight: inFlight,
  reserved_tokens: reservedTokens,
  prefix,
  session,
  latency,
} as const satisfies Readonly<Record<string, Scorer>>;

export type ScorerName = keyof typeof SCORERS;

/** What each scorer counts; 0 leaves it out. */
export type Weights = Readonly<Record<ScorerName, number>>;

export interface Scored {
  /** By candidate, in [0,1]. */
  readonly totals: readonly number[];
  /** By scorer and candidate; of scorers that count. */
  readonly byScorer: ReadonlyMap<ScorerName, readonly number[]>;
}

/**
 * The weighted mean of all scorers. Who is not known to a scorer gets the mean of those that are, so
 * that not knowing is neither an advantage nor the opposite.
 */
export function scoreAll(
  candidates: readonly Candidate[],
  wanted: Wanted,
  weights: Weights,
): Scored {
  const totals = new Array<number>(candidates.length).fill(0);
  const byScorer = new Map<ScorerName, readonly number[]>();
  let sum = 0;
  for (const name of SCORER_NAMES) {
    const weight = weights[name];
    if (weight <= 0) continue;
    const scores = SCORERS[name].score(candidates, wanted);
    const unknown = meanOfKnown(scores);
    if (unknown === undefined) continue;
    byScorer.set(name, scores);
    sum += weight;
    // Plain loops here: a thousand endpoints times seven scorers for each request.
    for (let index = 0; index < totals.length; index++) {
      const score = scores[index] ?? NaN;
      totals[index] = (totals[index] ?? 0) + weight * (Number.isNaN(score) ? unknown : score);
    }
  }
  return { totals: sum === 0 ? totals : totals.map((total) => total / sum), byScorer };
}

const SCORER_NAMES = Object.keys(SCORERS).filter((name) => isScorer(name));

/** What `of` gives for each scorer, by its name. */
export function eachScorer<T>(of: (scorer: Scorer) => T): Readonly<Record<ScorerName, T>> {
  const found: Partial<Record<ScorerName, T>> = {};
  for (const name of SCORER_NAMES) found[name] = of(SCORERS[name]);
  if (!isWhole(found)) throw new Error("A scorer has no name");
  return found;
}

function isWhole<T>(found: Partial<Record<ScorerName, T>>): found is Record<ScorerName, T> {
  return SCORER_NAMES.every((name) => name in found);
}

function isScorer(name: string): name is ScorerName {
  return name in SCORERS;
}

function meanOfKnown(scores: readonly number[]): number | undefined {
  let sum = 0;
  let count = 0;
  for (const score of scores) {
    if (Number.isNaN(score)) continue;
    sum += score;
    count++;
  }
  return count === 0 ? undefined : sum / count;
}
