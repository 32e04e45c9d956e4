/**
 * How long a replica takes to its first token, learnt from what it took: a constant part (its step,
 * its batch, the network) and a part for each prompt token that it has to compute first, those of
 * requests before this one included. A line through recent measurements, old ones fading, and held
 * by what is usual in the fleet until there are enough.
 */

interface Sums {
  readonly weight: number;
  readonly x: number;
  readonly y: number;
  readonly xx: number;
  readonly xy: number;
  readonly at: number;
}

export type FirstTokens = Sums;

/** Milliseconds to the first token: `constantMs + tokens × msPerToken`. */
export interface FirstTokenLine {
  readonly constantMs: number;
  readonly msPerToken: number;
}

export const NO_FIRST_TOKENS: FirstTokens = { weight: 0, x: 0, y: 0, xx: 0, xy: 0, at: 0 };

/** What is assumed before anything was measured: a mid-size model on one GPU. */
const USUAL: FirstTokenLine = { constantMs: 50, msPerToken: 0.1 };
/** Measurements that the usual line counts as. */
const USUAL_WEIGHT = 3;
/** Each measurement takes so much weight from the earlier ones: some forty count. */
const KEPT = 0.975;
/** A replica that was not measured for so long is half forgotten: it may have recovered. */
const HALF_LIFE_MS = 30_000;
/** Spread of the usual line's points, in tokens, which is what makes it a line. */
const USUAL_TOKENS = 1_000;

/** Adds one measurement: the first token came after `ms`, `tokens` had to be computed. */
export function measured(
  sums: FirstTokens,
  { tokens, ms }: { readonly tokens: number; readonly ms: number },
  now: number,
): FirstTokens {
  const kept = KEPT * faded(sums, now);
  return {
    weight: sums.weight * kept + 1,
    x: sums.x * kept + tokens,
    y: sums.y * kept + ms,
    xx: sums.xx * kept + tokens * tokens,
    xy: sums.xy * kept + tokens * ms,
    at: now,
  };
}

/** The line through what was measured, and through `usual` as far as too little was. */
export function lineOf(
  sums: FirstTokens,
  now: number,
  usual: FirstTokenLine = USUAL,
): FirstTokenLine {
  const kept = faded(sums, now);
  const low = usual.constantMs;
  const high = usual.constantMs + usual.msPerToken * USUAL_TOKENS;
  const half = USUAL_WEIGHT / 2;
  const weight = sums.weight * kept + USUAL_WEIGHT;
  const x = sums.x * kept + half * USUAL_TOKENS;
  const y = sums.y * kept + half * (low + high);
  const xx = sums.xx * kept + half * USUAL_TOKENS ** 2;
  const xy = sums.xy * kept + half * USUAL_TOKENS * high;
  const spread = weight * xx - x * x;
  const slope = spread <= 0 ? 0 : (weight * xy - x * y) / spread;
  // No replica computes tokens in no time, and none answers before it was asked.
  if (slope <= 0) return { constantMs: y / weight, msPerToken: 0 };
  const constant = (y - slope * x) / weight;
  return constant >= 0
    ? { constantMs: constant, msPerToken: slope }
    : { constantMs: 0, msPerToken: xy / xx };
}

function faded({ at }: Sums, now: number): number {
  return 0.5 ** (Math.max(0, now - at) / HALF_LIFE_MS);
}
