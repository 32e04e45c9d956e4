/**
 * How long one step of the engine takes.
 *
 * Decoding is bound by reading the weights until the batch is large, and by arithmetic after that. The plain model
 * `max(1/r, batch/R)` has a corner that no GPU has: a request would not feel a second one at all. A two-norm of the
 * two bounds is smooth: alone a request decodes at exactly r, every further one slows the others a little, and the
 * total approaches R (within 10 % of it from a batch of about 2·R/r). Prefill adds its own time, linear in the
 * tokens that the cache did not have.
 */

export interface SpeedOptions {
  readonly prefillTokensPerS: number;
  /** Decode rate of a request that is alone on the engine. */
  readonly decodeTokensPerS: number;
  /** Decode rate of all requests together that a large batch approaches; at least `decodeTokensPerS`. */
  readonly decodeTokensPerSTotal: number;
}

/** What a step computes. */
export interface StepLoad {
  readonly prefillTokens: number;
  /** Requests that decode one token each. */
  readonly decodeCount: number;
}

export type StepDuration = (load: StepLoad) => number;

/** A function from a step's load to its duration in ms, for these speeds. */
export function stepDuration(options: SpeedOptions): StepDuration {
  const aloneMs = 1000 / options.decodeTokensPerS;
  const shareMs = 1000 / options.decodeTokensPerSTotal;
  // Subtracting the share makes a batch of one take exactly `aloneMs`.
  const weightsMsSquared = Math.max(0, aloneMs ** 2 - shareMs ** 2);
  const prefillMsPerToken = 1000 / options.prefillTokensPerS;
  return ({ prefillTokens, decodeCount }) => {
    const decodeMs = decodeCount === 0
      ? 0
      : Math.sqrt(weightsMsSquared + (shareMs * decodeCount) ** 2);
    return prefillTokens * prefillMsPerToken + decodeMs;
  };
}
