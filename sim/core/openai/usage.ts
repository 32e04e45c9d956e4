/** Token counts of an answer, in OpenAI's shape. */
import type { EngineOutput } from "../engine/engine.ts";

export interface Usage {
  readonly prompt_tokens: number;
  readonly total_tokens: number;
  readonly completion_tokens: number;
  readonly prompt_tokens_details?: { readonly cached_tokens: number } | null;
}

/** Adds up the sequences of one request. A prompt with several choices counts once. */
export class UsageCount {
  readonly #promptTokens: number;
  readonly #details: boolean;
  #generated = 0;
  #cached = 0;

  constructor(options: { promptTokens: number; details: boolean }) {
    this.#promptTokens = options.promptTokens;
    this.#details = options.details;
  }

  add(output: EngineOutput): void {
    if (output.token !== undefined) this.#generated += 1;
    // Choices share one prompt; the one that found most of it in the cache speaks for it.
    if (output.finish !== undefined) {
      this.#cached = Math.max(this.#cached, output.finish.cachedTokens);
    }
  }

  get value(): Usage {
    return {
      prompt_tokens: this.#promptTokens,
      total_tokens: this.#promptTokens + this.#generated,
      completion_tokens: this.#generated,
      prompt_tokens_details: this.#details ? { cached_tokens: this.#cached } : null,
    };
  }

  /** As in a stream's chunk, where members that are not set are left out. */
  get streamed(): Usage {
    const { prompt_tokens_details: details, ...counts } = this.value;
    return details === null || details === undefined
      ? counts
      : { ...counts, prompt_tokens_details: details };
  }
}
