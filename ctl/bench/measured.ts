/** What a level of load gave, and how much of it kept the promise. */

/** One answer, as its client saw it. Times in ms. */
export interface Answered {
  /** Undefined when no content came. */
  readonly ttftMs: number | undefined;
  /** Mean time of a token after the first; undefined when there was none. */
  readonly tpotMs: number | undefined;
  /** From the request to its end. */
  readonly durationMs: number;
  readonly completionTokens: number;
  readonly promptTokens: number;
  /** Part of the prompt that the engine had in its cache; undefined when it does not say. */
  readonly cachedTokens: number | undefined;
  /** Why it failed; undefined when it did not. */
  readonly error: string | undefined;
}

/** What is promised to a request. */
export interface Slo {
  readonly ttftMs: number;
  readonly tpotMs: number;
}

/** A level of load: so many requests at a time, for so long. */
export interface Level {
  readonly concurrency: number;
  readonly seconds: number;
  readonly answered: number;
  readonly failed: number;
  /** Part of all requests, failed ones included, that kept the promise; 0 to 1. */
  readonly within: number;
  /** Requests a second that kept it. */
  readonly goodput: number;
  readonly completionTokensPerS: number;
  readonly ttftMs: Percentiles;
  readonly tpotMs: Percentiles;
  readonly durationMs: Percentiles;
  /** Part of prompt tokens that came from a cache; undefined when no engine said. */
  readonly cached: number | undefined;
  /** The first failure, in words. */
  readonly error: string | undefined;
}

/** Undefined without a sample. */
export interface Percentiles {
  readonly p50: number | undefined;
  readonly p90: number | undefined;
  readonly p99: number | undefined;
}

export interface Window {
  readonly concurrency: number;
  readonly seconds: number;
}

export function levelOf(
  answers: readonly Answered[],
  { concurrency, seconds }: Window,
  slo: Slo,
): Level {
  const well = answers.filter((answer) => answer.error === undefined);
  const kept = well.filter((answer) =>
    (answer.ttftMs ?? Infinity) <= slo.ttftMs && (answer.tpotMs ?? 0) <= slo.tpotMs
  );
  const said = well.filter((answer) => answer.cachedTokens !== undefined);
  const prompts = sum(said.map((answer) => answer.promptTokens));
  return {
    concurrency,
    seconds,
    answered: well.length,
    failed: answers.length - well.length,
    within: answers.length === 0 ? 0 : kept.length / answers.length,
    goodput: kept.length / seconds,
    completionTokensPerS: sum(well.map((answer) => answer.completionTokens)) / seconds,
    ttftMs: percentiles(well.flatMap((answer) => answer.ttftMs ?? [])),
    tpotMs: percentiles(well.flatMap((answer) => answer.tpotMs ?? [])),
    durationMs: percentiles(well.map((answer) => answer.durationMs)),
    cached: prompts === 0
      ? undefined
      : sum(said.map((answer) => answer.cachedTokens ?? 0)) / prompts,
    error: answers.find((answer) => answer.error !== undefined)?.error,
  };
}

/** By the nearest rank. */
export function percentiles(samples: readonly number[]): Percentiles {
  const sorted = samples.toSorted((a, b) => a - b);
  const at = (part: number) => sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)];
  return { p50: at(0.5), p90: at(0.9), p99: at(0.99) };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
