/** A request of Anthropic's Messages API, read as the conversation that it is. */
import { z } from "zod";
import { type ChatBody, chatPlan } from "../chat/request.ts";
import { type Message, renderPrompt } from "../chat/prompt.ts";
import { parseBody } from "../openai/body.ts";
import type { Job, RequestHead } from "../openai/job.ts";
import { resolveName, type ServedModel } from "../openai/model.ts";
import { encode } from "../text/tokenizer.ts";
import { MessagesAnswer } from "./answer.ts";

const textSchema = z.looseObject({ type: z.string(), text: z.string().nullish() });

const blockSchema = z.looseObject({
  type: z.string(),
  text: z.string().nullish(),
  /** Of a tool_result: text, or blocks. */
  content: z.union([z.string(), z.array(textSchema)]).nullish(),
  input: z.unknown().optional(),
});

const countSchema = z.looseObject({
  model: z.string().nullish(),
  messages: z.array(z.looseObject({
    role: z.enum(["user", "assistant"]),
    content: z.union([z.string(), z.array(blockSchema)]),
  })).min(1),
  system: z.union([z.string(), z.array(textSchema)]).nullish(),
  tools: z.array(z.looseObject({
    name: z.string().min(1),
    description: z.string().nullish(),
    input_schema: z.record(z.string(), z.unknown()).nullish(),
  })).nullish(),
});

const messagesSchema = countSchema.extend({
  max_tokens: z.int(),
  stream: z.boolean().nullish(),
  stop_sequences: z.array(z.string()).nullish(),
  temperature: z.number().nullish(),
  top_p: z.number().nullish(),
  tool_choice: z.looseObject({
    type: z.enum(["auto", "any", "tool", "none"]),
    name: z.string().nullish(),
  }).nullish(),
  sim_fault: z.string().nullish(),
});
type CountBody = z.infer<typeof countSchema>;
type MessagesBody = z.infer<typeof messagesSchema>;

/** Reads a Messages request. @throws RequestError for what vLLM would refuse. */
export function messagesJob(model: ServedModel, text: string, head: RequestHead): Job {
  const body = parseBody(messagesSchema, text);
  const plan = chatPlan(model, chatBodyOf(body), head);
  const answer = new MessagesAnswer({
    head: { id: head.id, created: head.created, model: plan.name },
    sequenceIds: plan.sequences.map(({ id }) => id),
    promptTokens: plan.promptTokens,
    toolCall: plan.toolCall,
  });
  return {
    id: head.id,
    sequences: plan.sequences,
    stream: body.stream === true,
    answer,
    typed: { done: true },
    fault: body.sim_fault ?? undefined,
  };
}

/** Counts the tokens that a Messages request would send. */
export function countTokens(model: ServedModel, text: string): object {
  const body = parseBody(countSchema, text);
  resolveName(model, body.model);
  const prompt = renderPrompt(conversationOf(body), {
    tools: toolsOf(body),
    imagesMax: model.imagesMax,
    generationPrompt: true,
  });
  return { input_tokens: encode(prompt).length };
}

function chatBodyOf(body: MessagesBody): ChatBody {
  return {
    model: body.model,
    messages: conversationOf(body),
    max_tokens: body.max_tokens,
    stop: body.stop_sequences,
    temperature: body.temperature,
    top_p: body.top_p,
    tools: toolsOf(body),
    tool_choice: toolChoiceOf(body.tool_choice),
  };
}

function conversationOf({ messages, system }: CountBody): Message[] {
  const turns = messages.map(({ role, content }): Message => ({
    role,
    content: typeof content === "string" ? content : content.map(partOf),
  }));
  if (system === null || system === undefined) return turns;
  const text = typeof system === "string" ? system : textOf(system);
  return [{ role: "system", content: text }, ...turns];
}

function partOf(block: z.infer<typeof blockSchema>): { type: string; text?: string } {
  switch (block.type) {
    case "text":
      return { type: "text", text: block.text ?? "" };
    case "image":
      return { type: "image_url" };
    case "tool_use":
      return { type: "text", text: JSON.stringify(block.input ?? {}) };
    case "tool_result": {
      const { content } = block;
      return { type: "text", text: typeof content === "string" ? content : textOf(content ?? []) };
    }
    case "thinking":
    case "redacted_thinking":
      return { type: "text", text: "" };
    default:
      return { type: block.type };
  }
}

function textOf(blocks: readonly z.infer<typeof textSchema>[]): string {
  return blocks.map(({ text }) => text ?? "").join("");
}

function toolsOf({ tools }: CountBody) {
  return (tools ?? []).map(({ name, description, input_schema }) => ({
    type: "function",
    function: { name, description, parameters: input_schema },
  }));
}

function toolChoiceOf(choice: MessagesBody["tool_choice"]): ChatBody["tool_choice"] {
  switch (choice?.type) {
    case undefined:
      return undefined;
    case "any":
      return "required";
    case "tool":
      return { type: "function", function: { name: choice?.name ?? "" } };
    case "auto":
    case "none":
      return choice?.type;
  }
}
