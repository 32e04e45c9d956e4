/** A Responses request: read as the conversation that it is, answered in its own events. */
import { z } from "zod";
import { type ChatBody, chatPlan } from "../chat/request.ts";
import type { Message } from "../chat/prompt.ts";
import { parseBody } from "../openai/body.ts";
import type { Job, RequestHead } from "../openai/job.ts";
import type { ServedModel } from "../openai/model.ts";
import { RequestError } from "../openai/request_error.ts";
import { ResponsesAnswer } from "./answer.ts";

const itemSchema = z.looseObject({
  type: z.string().nullish(),
  role: z.string().nullish(),
  content: z.union([
    z.string(),
    z.array(z.looseObject({ type: z.string(), text: z.string().nullish() })),
  ]).nullish(),
  output: z.unknown().optional(),
  arguments: z.string().nullish(),
});

const responsesSchema = z.looseObject({
  model: z.string().nullish(),
  input: z.union([z.string(), z.array(itemSchema)]),
  instructions: z.string().nullish(),
  stream: z.boolean().nullish(),
  store: z.boolean().nullish(),
  background: z.boolean().nullish(),
  previous_response_id: z.string().nullish(),
  max_output_tokens: z.int().nullish(),
  temperature: z.number().nullish(),
  top_p: z.number().nullish(),
  tools: z.array(z.looseObject({
    type: z.string(),
    name: z.string().nullish(),
    parameters: z.record(z.string(), z.unknown()).nullish(),
  })).nullish(),
  tool_choice: z.union([
    z.enum(["none", "auto", "required"]),
    z.looseObject({ type: z.literal("function"), name: z.string() }),
  ]).nullish(),
  text: z.looseObject({
    format: z.looseObject({ type: z.string(), schema: z.unknown().optional() }).nullish(),
  }).nullish(),
  cache_salt: z.string().nullish(),
  priority: z.int().nullish(),
  sim_fault: z.string().nullish(),
});
type ResponsesBody = z.infer<typeof responsesSchema>;
type Item = z.infer<typeof itemSchema>;

/** Reads a Responses request. @throws RequestError for what vLLM would refuse. */
export function responsesJob(model: ServedModel, text: string, head: RequestHead): Job {
  const body = parseBody(responsesSchema, text);
  const previous = body.previous_response_id;
  if (typeof previous === "string") {
    // Nothing is stored, as in vLLM unless it is told to.
    throw new RequestError(404, `Response with id '${previous}' not found.`);
  }
  if (body.background === true) {
    throw new RequestError(400, "background can only be used when `store` is true", "background");
  }
  const plan = chatPlan(model, chatBodyOf(body), head);
  const answer = new ResponsesAnswer({
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
    typed: { done: false },
    fault: body.sim_fault ?? undefined,
  };
}

function chatBodyOf(body: ResponsesBody): ChatBody {
  const input: readonly Message[] = typeof body.input === "string"
    ? [{ role: "user", content: body.input }]
    : body.input.map(messageOf);
  const format = body.text?.format;
  return {
    model: body.model,
    messages: typeof body.instructions === "string"
      ? [{ role: "system", content: body.instructions }, ...input]
      : [...input],
    max_tokens: body.max_output_tokens,
    temperature: body.temperature,
    top_p: body.top_p,
    cache_salt: body.cache_salt,
    priority: body.priority,
    tools: (body.tools ?? []).filter(({ type }) => type === "function").map((tool) => ({
      type: "function",
      function: { name: tool.name ?? "function", parameters: tool.parameters },
    })),
    tool_choice: typeof body.tool_choice === "object" && body.tool_choice !== null
      ? { type: "function", function: { name: body.tool_choice.name } }
      : body.tool_choice,
    response_format: format?.type === "json_schema"
      ? { type: "json_schema", json_schema: { schema: format.schema } }
      : undefined,
  };
}

function messageOf(item: Item): Message {
  switch (item.type ?? "message") {
    case "message":
      return { role: item.role ?? "user", content: contentOf(item) };
    case "function_call":
      return { role: "assistant", content: item.arguments ?? "" };
    case "function_call_output":
      return {
        role: "tool",
        content: typeof item.output === "string" ? item.output : JSON.stringify(item.output ?? ""),
      };
    case "reasoning":
      return { role: "assistant", content: "" };
    default:
      throw new RequestError(400, `Unknown type of input item: ${item.type}`, "input");
  }
}

function contentOf({ content }: Item): Message["content"] {
  if (content === null || content === undefined || typeof content === "string") return content;
  return content.map((part) => {
    if (part.type === "output_text") return { type: "text", text: part.text };
    return part.type === "input_image" ? { ...part, type: "image_url" } : part;
  });
}
