/** A chat completion request, from body to job. */
import { z } from "zod";
import { parseBody } from "../openai/body.ts";
import type { Job, RequestHead } from "../openai/job.ts";
import { resolveName, type ServedModel } from "../openai/model.ts";
import { RequestError } from "../openai/request_error.ts";
import {
  checkSampling,
  choiceCount,
  samplingShape,
  sequenceOf,
  tokensMax,
  usageOptions,
} from "../openai/sampling.ts";
import type { SequenceRequest } from "../engine/sequence.ts";
import { hash32, randomFrom } from "../text/random.ts";
import { SchemaFill } from "../text/schema_fill.ts";
import { encode } from "../text/tokenizer.ts";
import { ChatAnswer } from "./answer.ts";
import { messageSchema, renderPrompt, textOfMessage } from "./prompt.ts";
import { type ToolCall, toolCallOf, toolChoiceSchema, toolSchema } from "./tools.ts";

const TOP_LOGPROBS_MAX = 20;

const chatSchema = z.looseObject({
  ...samplingShape,
  messages: z.array(messageSchema).min(1),
  max_completion_tokens: z.int().nullish(),
  tools: z.array(toolSchema).nullish(),
  tool_choice: toolChoiceSchema.nullish(),
  response_format: z.looseObject({
    type: z.string(),
    json_schema: z.looseObject({ schema: z.unknown() }).nullish(),
  }).nullish(),
  logprobs: z.boolean().nullish(),
  top_logprobs: z.int().nullish(),
});
export type ChatBody = z.infer<typeof chatSchema>;

/** A conversation that the engine will go on with, whichever API it came by. */
export interface ChatPlan {
  /** The model's name as the client asked for it. */
  readonly name: string;
  readonly promptTokens: number;
  readonly sequences: readonly SequenceRequest[];
  /** The call that the answer's text is the arguments of. */
  readonly toolCall: ToolCall | undefined;
}

/** Reads a chat request. @throws RequestError for what vLLM would refuse. */
export function chatJob(
  model: ServedModel,
  text: string,
  head: RequestHead,
): Job {
  const body = parseBody(chatSchema, text);
  const usage = usageOptions(model, body);
  const { name, promptTokens, sequences, toolCall } = chatPlan(model, body, head);
  const answer = new ChatAnswer({
    head: { id: head.id, created: head.created, model: name },
    sequenceIds: sequences.map((sequence) => sequence.id),
    promptTokens,
    usage,
    toolCall,
    topLogprobs: topLogprobs(model, body),
  });
  return {
    id: head.id,
    sequences,
    stream: body.stream === true,
    answer,
    fault: body.sim_fault ?? undefined,
  };
}

/** Plans the answer to a conversation. @throws RequestError for what vLLM would refuse. */
export function chatPlan(model: ServedModel, body: ChatBody, head: RequestHead): ChatPlan {
  const name = resolveName(model, body.model);
  if (!model.generates) {
    throw new RequestError(400, "The model does not support Chat Completions API");
  }
  checkSampling(body);
  const choices = choiceCount(model, body);
  const promptTokens = encode(renderPrompt(body.messages, {
    tools: body.tools ?? [],
    imagesMax: model.imagesMax,
    generationPrompt: true,
  }));
  const limit = tokensMax(
    model,
    promptTokens.length,
    body.max_completion_tokens ?? body.max_tokens,
  );
  const toolCall = toolCallFor(model, body);
  const { opening, exact } = openingOf(body, toolCall, promptTokens);
  const sequences = Array.from({ length: choices }, (_, choice) =>
    sequenceOf(model, body, {
      id: `${head.key}-${choice}`,
      promptTokens,
      opening,
      exact,
      tokensMax: limit,
      choice,
    }));
  return { name, promptTokens: promptTokens.length, sequences, toolCall };
}

function toolCallFor(model: ServedModel, body: ChatBody): ToolCall | undefined {
  const last = body.messages.at(-1);
  return toolCallOf({
    tools: body.tools ?? [],
    choice: body.tool_choice,
    autoToolChoice: model.autoToolChoice,
    lastUserText: last?.role === "user" ? textOfMessage(last) : undefined,
    seed: hash32([model.seed, body.seed ?? 0]),
  });
}

/** What the answer starts with: arguments for a tool, JSON that was asked for, or a word of honesty. */
function openingOf(
  body: ChatBody,
  toolCall: ToolCall | undefined,
  promptTokens: readonly number[],
): { opening: string; exact: boolean } {
  if (toolCall !== undefined) return { opening: toolCall.arguments, exact: true };
  const format = body.response_format?.type ?? "text";
  if (format === "json_schema" || format === "json_object") {
    const schema = body.response_format?.json_schema?.schema ??
      { type: "object", properties: { answer: { type: "string" } } };
    const random = randomFrom(hash32(promptTokens));
    return { opening: JSON.stringify(new SchemaFill(schema, random).value()), exact: true };
  }
  const names = (body.tools ?? []).map((tool) => tool.function.name);
  const offered = names.length === 0 ? "" : ` It was offered the tools: ${names.join(", ")}.`;
  return { opening: HONEST_OPENING + offered, exact: false };
}

/** Nobody who reads an answer should take it for a model's. */
const HONEST_OPENING =
  "This is a simulated engine, not a language model, so these words mean nothing.";

/** undefined when no log probabilities were asked for. */
function topLogprobs(model: ServedModel, body: ChatBody): number | undefined {
  const count = body.top_logprobs ?? 0;
  const most = Math.min(model.logprobsMax, TOP_LOGPROBS_MAX);
  if (count > 0 && body.logprobs !== true) {
    throw new RequestError(
      400,
      "when using `top_logprobs`, `logprobs` must be set to true.",
      "top_logprobs",
    );
  }
  if (count < 0 || count > most) {
    throw new RequestError(
      400,
      `Requested sample logprobs of ${count}, which is greater than max allowed: ${most}`,
      "top_logprobs",
    );
  }
  return body.logprobs === true ? count : undefined;
}
