/**
 * Requests from a file of JSON lines, sent in their order and again from the start. A line is either
 * what was said, or only how long it was:
 *
 *   {"messages": [{"role": "user", "content": "…"}], "max_tokens": 200}
 *   {"prompt_tokens": 900, "output_tokens": 150, "prefix": "docs-7", "prefix_tokens": 600}
 */
import { z } from "zod";
import { HeddleError } from "@heddle/proto/error";
import { randomOf } from "./random.ts";
import { type BenchRequest, type Shape, sharedWords, words } from "./shape.ts";

const OUTPUT_TOKENS = 256;

const saidSchema = z.strictObject({
  messages: z.array(z.strictObject({ role: z.string(), content: z.string() })).min(1),
  max_tokens: z.int().min(1).default(OUTPUT_TOKENS),
});
const lengthSchema = z.strictObject({
  prompt_tokens: z.int().min(1),
  output_tokens: z.int().min(1).default(OUTPUT_TOKENS),
  prefix: z.string().optional(),
  prefix_tokens: z.int().min(0).default(0),
});
type Line = z.output<typeof saidSchema> | z.output<typeof lengthSchema>;

/** Throws `invalid_input` with the line that is wrong. */
export function shapeOfLines(name: string, text: string): Shape {
  const lines = text.split("\n").flatMap((line, index) =>
    line.trim() === "" ? [] : [parseLine(line, `${name}:${index + 1}`)]
  );
  const [first] = lines;
  if (first === undefined) {
    throw new HeddleError("invalid_input", `${name}: there is no request in it`);
  }
  return {
    name,
    request: (seed, index) => requestOf(lines[index % lines.length] ?? first, { seed, index }),
  };
}

function parseLine(text: string, place: string): Line {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new HeddleError("invalid_input", `${place}: not a line of JSON`);
  }
  const said = typeof json === "object" && json !== null && "messages" in json;
  const parsed = said ? saidSchema.safeParse(json) : lengthSchema.safeParse(json);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const where = issue === undefined || issue.path.length === 0 ? "" : `${issue.path.join(".")}: `;
  throw new HeddleError("invalid_input", `${place}: ${where}${issue?.message ?? "not a request"}`);
}

function requestOf(line: Line, { seed, index }: { seed: number; index: number }): BenchRequest {
  if ("messages" in line) return { messages: line.messages, maxTokens: line.max_tokens };
  const shared = line.prefix === undefined ? 0 : Math.min(line.prefix_tokens, line.prompt_tokens);
  const begin = shared === 0
    ? []
    : [{ role: "system", content: sharedWords(seed, line.prefix ?? "", shared) }];
  const rest = Math.max(1, line.prompt_tokens - shared);
  const question = { role: "user", content: words(randomOf("line", seed, index), rest) };
  return { messages: [...begin, question], maxTokens: line.output_tokens };
}
