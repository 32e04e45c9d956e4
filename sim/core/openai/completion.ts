/** A text completion request, from body to job. */
import { z } from "zod";
import { decode, encode, inVocabulary } from "../text/tokenizer.ts";
import { parseBody } from "./body.ts";
import { CompletionAnswer } from "./completion_answer.ts";
import type { Job, RequestHead } from "./job.ts";
import { resolveName, type ServedModel } from "./model.ts";
import { RequestError } from "./request_error.ts";
import {
  checkSampling,
  choiceCount,
  samplingShape,
  sequenceOf,
  tokensMax,
  usageOptions,
} from "./sampling.ts";

/** OpenAI's default, which vLLM keeps. */
const TOKENS_DEFAULT = 16;
const OPENING = " This is a simulated engine, not a language model.";

const tokenIds = z.array(z.int().nonnegative());
export const promptSchema = z.union([
  z.string(),
  tokenIds.min(1),
  z.array(z.string()).min(1),
  z.array(tokenIds.min(1)).min(1),
]);

const completionSchema = z.looseObject({
  ...samplingShape,
  prompt: promptSchema,
  echo: z.boolean().nullish(),
  suffix: z.string().nullish(),
  logprobs: z.int().nullish(),
});

/** The prompts of a body as token ids. @throws RequestError 400 for an id that does not exist. */
export function promptsOf(prompt: z.infer<typeof promptSchema>): readonly (readonly number[])[] {
  const prompts = listsOf(prompt);
  for (const id of prompts.flat()) {
    if (!inVocabulary(id)) throw new RequestError(400, `Token id ${id} is out of vocabulary`);
  }
  return prompts;
}

function listsOf(prompt: z.infer<typeof promptSchema>): readonly (readonly number[])[] {
  if (typeof prompt === "string") return [encode(prompt)];
  const single: number[] = [];
  const several: (readonly number[])[] = [];
  for (const item of prompt) {
    if (typeof item === "number") single.push(item);
    else several.push(typeof item === "string" ? encode(item) : item);
  }
  return single.length > 0 ? [single] : several;
}

/** Reads a completion request. @throws RequestError for what vLLM would refuse. */
export function completionJob(
  model: ServedModel,
  text: string,
  head: RequestHead,
): Job {
  const body = parseBody(completionSchema, text);
  const name = resolveName(model, body.model);
  if (!model.generates) throw new RequestError(400, "The model does not support Completions API");
  if (typeof body.suffix === "string" && body.suffix !== "") {
    throw new RequestError(400, "suffix is not currently supported", "suffix");
  }
  checkSampling(body);
  const logprobs = logprobsOf(model, body.logprobs);
  const usage = usageOptions(model, body);
  const choices = choiceCount(model, body);
  const prompts = promptsOf(body.prompt);
  const sequences = prompts.flatMap((promptTokens, prompt) => {
    if (promptTokens.length === 0) {
      throw new RequestError(400, "The decoder prompt cannot be empty", "prompt");
    }
    const limit = tokensMax(model, promptTokens.length, body.max_tokens ?? TOKENS_DEFAULT);
    return Array.from({ length: choices }, (_, choice) =>
      sequenceOf(model, body, {
        id: `${head.key}-${prompt * choices + choice}`,
        promptTokens,
        opening: OPENING,
        exact: false,
        tokensMax: limit,
        choice,
      }));
  });
  const answer = new CompletionAnswer({
    head: { id: head.id, created: head.created, model: name },
    sequenceIds: sequences.map((sequence) => sequence.id),
    promptTokens: prompts.reduce((sum, prompt) => sum + prompt.length, 0),
    usage,
    echoes: body.echo === true
      ? sequences.map((sequence) => decode(sequence.promptTokens))
      : undefined,
    logprobs,
  });
  return {
    id: head.id,
    sequences,
    stream: body.stream === true,
    answer,
    fault: body.sim_fault ?? undefined,
  };
}

function logprobsOf(model: ServedModel, asked: number | null | undefined): number | undefined {
  if (asked === null || asked === undefined) return undefined;
  if (asked < 0 || asked > model.logprobsMax) {
    throw new RequestError(
      400,
      `Requested sample logprobs of ${asked}, which is greater than max allowed: ` +
        `${model.logprobsMax}`,
      "logprobs",
    );
  }
  return asked;
}
