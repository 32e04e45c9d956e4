/**
 * What the answers of a key at a model usually come to, and how far the estimate of a prompt's
 * length is off at a model. Both are learned from what engines say, and only ever estimates.
 */

/** Answers that are remembered of a key at a model: the 95th percentile of them leaves out one. */
const SAMPLES = 32;
/** Pairs of key and model; the one unused for longest goes first. */
const PAIRS_MAX = 20_000;
/** What a key's first answers are taken to have where the request does not say. */
const UNKNOWN_ANSWER_TOKENS = 512;
/** Most that is ever reserved for an answer; what is longer becomes debt. */
const ANSWER_TOKENS_MAX = 8_192;
/** Weight of the newest prompt in the ratio. */
const RATIO_WEIGHT = 0.1;
const MODELS_MAX = 10_000;

interface Pair {
  readonly samples: number[];
  next: number;
}

export class Learned {
  readonly #pairs = new Map<string, Pair>();
  readonly #ratios = new Map<string, number>();

  /** Tokens to reserve for an answer. `bound` is what the request says at most, if it says so. */
  answerTokens(key: string, model: string, bound: number | undefined): number {
    const usual = percentile95(this.#pairs.get(pairOf(key, model))?.samples ?? []);
    return Math.min(
      bound ?? Infinity,
      usual ?? bound ?? UNKNOWN_ANSWER_TOKENS,
      ANSWER_TOKENS_MAX,
    );
  }

  /** A better estimate of a prompt's tokens. */
  promptTokens(model: string, estimate: number): number {
    return Math.max(1, Math.round(estimate * (this.#ratios.get(model) ?? 1)));
  }

  /** Takes what an engine said of one answer. */
  answered(key: string, model: string, completionTokens: number): void {
    const name = pairOf(key, model);
    const pair = this.#pairs.get(name) ?? { samples: [], next: 0 };
    pair.samples[pair.next] = completionTokens;
    pair.next = (pair.next + 1) % SAMPLES;
    this.#pairs.delete(name);
    this.#pairs.set(name, pair);
    if (this.#pairs.size > PAIRS_MAX) forgetFirst(this.#pairs);
  }

  /** Takes what an engine said of one prompt that had been estimated. */
  prompted(model: string, estimate: number, promptTokens: number): void {
    if (estimate <= 0 || promptTokens <= 0) return;
    const ratio = promptTokens / estimate;
    const before = this.#ratios.get(model);
    this.#ratios.set(
      model,
      before === undefined ? ratio : before + (ratio - before) * RATIO_WEIGHT,
    );
    if (this.#ratios.size > MODELS_MAX) forgetFirst(this.#ratios);
  }
}

function pairOf(key: string, model: string): string {
  return `${key}\n${model}`;
}

function percentile95(samples: readonly number[]): number | undefined {
  if (samples.length === 0) return undefined;
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.ceil(sorted.length * 0.95) - 1];
}

function forgetFirst(map: Map<string, unknown>): void {
  const [first] = map.keys();
  if (first !== undefined) map.delete(first);
}
