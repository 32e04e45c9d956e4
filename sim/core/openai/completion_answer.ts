/** A text completion as vLLM writes it: events of a stream, or one body. */
import type { EngineOutput } from "../engine/engine.ts";
import { type Choice, Choices, takeUnsent } from "./choices.ts";
import type { AnswerHead, AnswerWriter } from "./job.ts";
import { completionLogprobs, type PlacedToken } from "./logprobs.ts";
import type { UsageOptions } from "./sampling.ts";
import { UsageCount } from "./usage.ts";

export interface CompletionAnswerOptions {
  readonly head: AnswerHead;
  readonly sequenceIds: readonly string[];
  readonly promptTokens: number;
  readonly usage: UsageOptions;
  /** Prompt texts to give back before the answers, by choice. */
  readonly echoes: readonly string[] | undefined;
  /** Alternatives per token; undefined for no log probabilities. */
  readonly logprobs: number | undefined;
}

export class CompletionAnswer implements AnswerWriter {
  readonly #options: CompletionAnswerOptions;
  readonly #choices: Choices;
  readonly #usage: UsageCount;
  readonly #echoed = new Set<number>();

  constructor(options: CompletionAnswerOptions) {
    this.#options = options;
    this.#choices = new Choices(options.sequenceIds);
    this.#usage = new UsageCount({
      promptTokens: options.promptTokens,
      details: options.usage.details,
    });
  }

  push(output: EngineOutput): object[] {
    const choice = this.#choices.push(output);
    this.#usage.add(output);
    if (output.text === "" && output.finish === undefined) return [];
    const echo = this.#echoed.has(choice.index) ? "" : this.#echo(choice);
    this.#echoed.add(choice.index);
    const event = {
      ...this.#head(),
      choices: [this.#choice(choice, echo + output.text, takeUnsent(choice))],
    };
    return [this.#options.usage.continuous ? { ...event, usage: this.#usage.streamed } : event];
  }

  closing(): object[] {
    if (!this.#options.usage.include) return [];
    return [{ ...this.#head(), choices: [], usage: this.#usage.streamed }];
  }

  whole(): object {
    return {
      ...this.#head(),
      choices: this.#choices.all.map((choice) => ({
        ...this.#choice(choice, this.#echo(choice) + choice.text, choice.tokens),
        token_ids: null,
        prompt_logprobs: null,
        prompt_token_ids: null,
      })),
      service_tier: null,
      system_fingerprint: null,
      usage: this.#usage.value,
      kv_transfer_params: null,
    };
  }

  #echo(choice: Choice): string {
    return this.#options.echoes?.[choice.index] ?? "";
  }

  #choice(choice: Choice, text: string, tokens: readonly PlacedToken[]): object {
    const { logprobs } = this.#options;
    const offset = this.#echo(choice).length;
    return {
      index: choice.index,
      text,
      logprobs: logprobs === undefined ? null : completionLogprobs(tokens, logprobs, offset),
      finish_reason: choice.finish?.reason ?? null,
      stop_reason: choice.finish?.stoppedBy ?? null,
    };
  }

  #head(): object {
    const { head } = this.#options;
    return {
      id: head.id,
      object: "text_completion",
      created: head.created,
      model: head.model,
    };
  }
}
