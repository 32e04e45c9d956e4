/** Traffic for simulated fleets: the same for the same seed. */
import type { Band } from "../../router/core/admission/band.ts";
import type { SimulatedRequest } from "./simulated_fleet.ts";

/** Numbers in [0,1), the same for the same seed. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export interface Stream {
  readonly band: Band;
  readonly tenant: string;
  /** Mean; arrivals are independent of each other. */
  readonly perSecond: number;
  readonly fromMs: number;
  readonly untilMs: number;
  readonly promptTokens: number;
  readonly answerTokens: number;
  readonly seed: number;
}

/** Requests whose prompts have nothing in common, of about the lengths that are named. */
export function* stream(options: Stream): Iterable<SimulatedRequest> {
  const random = seeded(options.seed);
  const around = (mean: number) => Math.max(1, Math.round(mean * (0.5 + random())));
  let at = options.fromMs;
  for (;;) {
    at += -Math.log(1 - random()) / options.perSecond * 1_000;
    if (at >= options.untilMs) return;
    const length = around(options.promptTokens);
    const salt = Math.floor(random() * 500_000);
    yield {
      at,
      band: options.band,
      tenant: options.tenant,
      promptTokens: length,
      prompt: () => Array.from({ length }, (_, token) => 1_000 + (salt + token * 7) % 600_000),
      answerTokens: around(options.answerTokens),
    };
  }
}

/** The value that a share of all is at most; NaN of nothing. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)] ?? NaN;
}
