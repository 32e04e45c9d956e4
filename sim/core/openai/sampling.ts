/** The members that chat and completion requests share, and the sequences that come of them. */
import { z } from "zod";
import { Answer } from "../text/answer.ts";
import { hash32, integerBetween, randomFrom } from "../text/random.ts";
import type { SequenceRequest } from "../engine/sequence.ts";
import type { ServedModel } from "./model.ts";
import { RequestError } from "./request_error.ts";

const STOP_STRINGS_MAX = 64;

/** Shape of the shared members; requests may carry others, which are ignored as vLLM ignores them. */
export const samplingShape = {
  model: z.string().nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({
    include_usage: z.boolean().nullish(),
    continuous_usage_stats: z.boolean().nullish(),
  }).nullish(),
  max_tokens: z.int().nullish(),
  min_tokens: z.int().nonnegative().nullish(),
  n: z.int().nullish(),
  stop: z.union([z.string(), z.array(z.string()).max(STOP_STRINGS_MAX)]).nullish(),
  stop_token_ids: z.array(z.int()).nullish(),
  include_stop_str_in_output: z.boolean().nullish(),
  ignore_eos: z.boolean().nullish(),
  seed: z.int().nullish(),
  temperature: z.number().nullish(),
  top_p: z.number().nullish(),
  cache_salt: z.string().nullish(),
  priority: z.int().nullish(),
  sim_fault: z.string().nullish(),
};

const samplingSchema = z.looseObject(samplingShape);
export type Sampling = z.infer<typeof samplingSchema>;

/** How a stream reports usage. */
export interface UsageOptions {
  readonly include: boolean;
  readonly continuous: boolean;
  /** Whether usage says how much of the prompt was cached. */
  readonly details: boolean;
}

export function usageOptions(model: ServedModel, sampling: Sampling): UsageOptions {
  const asked = sampling.stream_options;
  if (asked !== null && asked !== undefined && sampling.stream !== true) {
    throw new RequestError(
      400,
      "Stream options can only be defined when `stream=True`.",
      "stream_options",
    );
  }
  const include = asked?.include_usage === true || model.forceIncludeUsage;
  return {
    include,
    continuous: include && asked?.continuous_usage_stats === true,
    details: model.promptTokensDetails,
  };
}

/** Number of choices asked for. @throws RequestError 400 when it is out of range. */
export function choiceCount(model: ServedModel, sampling: Sampling): number {
  const n = sampling.n ?? 1;
  if (n < 1) throw new RequestError(400, `n must be at least 1, got ${n}.`, "n");
  if (n > model.choicesMax) {
    throw new RequestError(400, `n must be at most ${model.choicesMax}, got ${n}.`, "n");
  }
  return n;
}

/** @throws RequestError 400 for values that vLLM refuses. */
export function checkSampling(sampling: Sampling): void {
  const { temperature, top_p: topP, priority } = sampling;
  if (typeof temperature === "number" && temperature < 0) {
    throw new RequestError(
      400,
      `temperature must be non-negative, got ${temperature}.`,
      "temperature",
    );
  }
  if (typeof topP === "number" && (topP <= 0 || topP > 1)) {
    throw new RequestError(400, `top_p must be in (0, 1], got ${topP}.`, "top_p");
  }
  if (typeof priority === "number" && priority !== 0) {
    throw new RequestError(
      400,
      `Got priority ${priority} but Priority scheduling is not enabled.`,
      "priority",
    );
  }
  if (sampling.cache_salt === "") {
    throw new RequestError(400, "Parameter 'cache_salt' must be a non-empty string.", "cache_salt");
  }
}

/**
 * Tokens that may be generated after a prompt of `promptTokens`; `asked` is the client's wish.
 * @throws RequestError 400 when prompt, or prompt and wish together, do not fit the context.
 */
export function tokensMax(
  model: ServedModel,
  promptTokens: number,
  asked: number | null | undefined,
): number {
  const context = model.contextTokensMax;
  if (promptTokens >= context) {
    throw new RequestError(
      400,
      `This model's maximum context length is ${context} tokens. However, your request has ` +
        `${promptTokens} input tokens. Please reduce the length of the input messages.`,
      "input_tokens",
    );
  }
  if (asked === null || asked === undefined) return context - promptTokens;
  if (asked < 1) {
    throw new RequestError(400, `max_tokens must be at least 1, got ${asked}.`, "max_tokens");
  }
  if (asked > context - promptTokens) {
    throw new RequestError(
      400,
      `'max_tokens' or 'max_completion_tokens' is too large: ${asked}. This model's maximum ` +
        `context length is ${context} tokens and your request has ${promptTokens} input tokens ` +
        `(${asked} > ${context} - ${promptTokens}).`,
      "max_tokens",
    );
  }
  return asked;
}

export interface SequencePlan {
  readonly id: string;
  readonly promptTokens: readonly number[];
  /** What the answer starts with, word for word. */
  readonly opening: string;
  /** Whether the answer is `opening` and nothing else. */
  readonly exact: boolean;
  readonly tokensMax: number;
  /** Tells choices of one prompt apart. */
  readonly choice: number;
}

/** One choice's sequence. The same model seed, request seed, prompt and choice give the same answer. */
export function sequenceOf(
  model: ServedModel,
  sampling: Sampling,
  plan: SequencePlan,
): SequenceRequest {
  const { choice, promptTokens } = plan;
  const seed = hash32([model.seed, sampling.seed ?? 0, choice, hash32(promptTokens)]);
  const natural = integerBetween(randomFrom(seed), model.answerTokensMin, model.answerTokensMax);
  const stop = sampling.stop ?? [];
  return {
    id: plan.id,
    promptTokens,
    answer: new Answer({
      seed,
      opening: plan.opening,
      naturalTokens: plan.exact ? 0 : natural,
    }),
    tokensMax: plan.tokensMax,
    tokensMin: Math.min(sampling.min_tokens ?? 0, plan.tokensMax),
    ignoreEnd: sampling.ignore_eos ?? false,
    stop: typeof stop === "string" ? [stop] : stop,
    stopTokenIds: sampling.stop_token_ids ?? [],
    includeStop: sampling.include_stop_str_in_output ?? false,
    cacheSalt: sampling.cache_salt ?? "",
  };
}
