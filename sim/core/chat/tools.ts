/** Tools in a chat request: which one, if any, the simulated answer calls. */
import { z } from "zod";
import { hash32, randomFrom } from "../text/random.ts";
import { RequestError } from "../openai/request_error.ts";
import { SchemaFill } from "../text/schema_fill.ts";

export const toolSchema = z.looseObject({
  type: z.string(),
  function: z.looseObject({
    name: z.string().min(1),
    description: z.string().nullish(),
    parameters: z.record(z.string(), z.unknown()).nullish(),
  }),
});
export type Tool = z.infer<typeof toolSchema>;

export const toolChoiceSchema = z.union([
  z.enum(["none", "auto", "required"]),
  z.looseObject({ type: z.literal("function"), function: z.looseObject({ name: z.string() }) }),
]);
export type ToolChoice = z.infer<typeof toolChoiceSchema>;

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** JSON text. */
  readonly arguments: string;
}

export interface ToolRequest {
  readonly tools: readonly Tool[];
  readonly choice: ToolChoice | null | undefined;
  readonly autoToolChoice: boolean;
  /** The last user message; undefined when the conversation does not end with one. */
  readonly lastUserText: string | undefined;
  readonly seed: number;
}

/**
 * The tool that the answer calls. Required and named choices always call one. With "auto" the rule is one that a
 * test can rely on: the last message is the user's and holds a tool's name, or asks to use, or call, a tool.
 * @throws RequestError 400 for choices that cannot be met.
 */
export function toolCallOf(request: ToolRequest): ToolCall | undefined {
  const tool = chosenTool(request);
  if (tool === undefined) return undefined;
  const schema = tool.function.parameters ?? { type: "object", properties: {} };
  const seed = hash32([request.seed, tool.function.name]);
  return {
    id: `chatcmpl-tool-${seed.toString(16).padStart(8, "0")}`,
    name: tool.function.name,
    arguments: JSON.stringify(new SchemaFill(schema, randomFrom(seed)).value()),
  };
}

function chosenTool(request: ToolRequest): Tool | undefined {
  const { tools, choice } = request;
  if (tools.length === 0) {
    if (choice === null || choice === undefined || choice === "none") return undefined;
    throw new RequestError(400, "When using `tool_choice`, `tools` must be set.", "tool_choice");
  }
  if (choice === "none") return undefined;
  if (choice === "required") return mentioned(request) ?? tools[0];
  if (choice === "auto" || choice === null || choice === undefined) {
    if (request.autoToolChoice) return mentioned(request);
    throw new RequestError(
      400,
      '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
      "tool_choice",
    );
  }
  const named = tools.find((tool) => tool.function.name === choice.function.name);
  if (named !== undefined) return named;
  throw new RequestError(
    400,
    "The tool specified in `tool_choice` does not match any of the specified `tools`",
    "tool_choice",
  );
}

function mentioned(request: ToolRequest): Tool | undefined {
  const text = request.lastUserText;
  if (text === undefined) return undefined;
  const byName = request.tools.find((tool) => text.includes(tool.function.name));
  return byName ??
    (/\b(use|call)\s+(a|the|any)\s+tool\b/i.test(text) ? request.tools[0] : undefined);
}
