/**
 * A day of requests from a seed: a night, a morning that climbs, two peaks with lunch between, an
 * evening, and a few bursts that nobody announced. It is made, not recorded at anybody's: the shape is
 * that of an office's working day; lengths are those of the bench's shape "chat".
 */
import { type Random, randomOf } from "../../control/core/testing/random.ts";

export const DAY_S = 86_400;

/** Requests a second at whole hours, as a share of the peak. */
const BY_HOUR = [
  0.16,
  0.12,
  0.1,
  0.09,
  0.09,
  0.12,
  0.2,
  0.38,
  0.66,
  0.88,
  0.98,
  0.96,
  0.78,
  0.86,
  1,
  0.97,
  0.9,
  0.76,
  0.58,
  0.5,
  0.46,
  0.4,
  0.3,
  0.21,
] as const;

/** Unannounced: more of everything for some minutes. */
const BURSTS = 4;
const BURST_FACTOR = 1.8;
const BURST_S = [180, 600] as const;

/** Slow noise: how much one minute's rate differs from the day's curve. */
const NOISE = 0.06;
const NOISE_KEPT = 0.9;

export interface Arrival {
  readonly promptTokens: number;
  readonly outputTokens: number;
}

export interface Trace {
  /** Requests a second at a second of the day; seconds before 0 are the day before's. */
  rate(second: number): number;
  /** What arrives from there on, in a part of a second. Asked in order, each once. */
  arrivals(second: number, seconds: number): readonly Arrival[];
}

export function traceOf(seed: number, peakPerS: number): Trace {
  const random = randomOf(seed);
  const bursts = Array.from({ length: BURSTS }, () => {
    const from = random.int(0, DAY_S - 1);
    return { from, until: from + random.int(...BURST_S) };
  });
  const noise = noiseOf(random);
  const rate = (second: number) => {
    const at = ((second % DAY_S) + DAY_S) % DAY_S;
    const burst = bursts.some(({ from, until }) => at >= from && at < until) ? BURST_FACTOR : 1;
    return peakPerS * curve(at) * burst * (noise[Math.floor(at / 60)] ?? 1);
  };
  return {
    rate,
    arrivals: (second, seconds) =>
      Array.from({ length: poisson(random, rate(Math.floor(second)) * seconds) }, () => ({
        promptTokens: 300 + logUniform(random, 50, 800),
        outputTokens: logUniform(random, 50, 400),
      })),
  };
}

/** Between whole hours it goes along half a wave, so that it has no corners. */
function curve(second: number): number {
  const hour = second / 3_600;
  const [from, to] = [BY_HOUR[Math.floor(hour)] ?? 0, BY_HOUR[(Math.floor(hour) + 1) % 24] ?? 0];
  const part = (1 - Math.cos(Math.PI * (hour % 1))) / 2;
  return from + (to - from) * part;
}

function noiseOf(random: Random): readonly number[] {
  let drift = 0;
  return Array.from({ length: DAY_S / 60 }, () => {
    drift = NOISE_KEPT * drift + NOISE * (2 * random.next() - 1);
    return Math.exp(drift);
  });
}

function logUniform(random: Random, low: number, high: number): number {
  return Math.round(low * (high / low) ** random.next());
}

/** By counting waits; the mean of one step is small. */
function poisson(random: Random, mean: number): number {
  const limit = Math.exp(-mean);
  let count = 0;
  for (let product = random.next(); product > limit; product *= random.next()) count++;
  return count;
}
