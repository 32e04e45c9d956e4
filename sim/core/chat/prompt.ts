/** A conversation as the one text that the model reads (ChatML), and what in it cannot be read. */
import { z } from "zod";
import { RequestError } from "../openai/request_error.ts";
import type { Tool } from "./tools.ts";

/** Prompt tokens that an image stands for. */
const IMAGE_TOKENS = 256;

const partSchema = z.looseObject({ type: z.string(), text: z.string().nullish() });

export const messageSchema = z.looseObject({
  role: z.string().min(1),
  content: z.union([z.string(), z.array(partSchema)]).nullish(),
  tool_calls: z.array(z.looseObject({})).nullish(),
});
export type Message = z.infer<typeof messageSchema>;

export interface PromptOptions {
  readonly tools: readonly Tool[];
  readonly imagesMax: number;
  /** Whether the prompt ends with the head of the assistant's turn. */
  readonly generationPrompt: boolean;
}

/** The prompt's text. @throws RequestError 400 for content parts that a text model cannot read. */
export function renderPrompt(messages: readonly Message[], options: PromptOptions): string {
  const turns = messages.map((message) => {
    const calls = message.tool_calls ?? [];
    const called = calls.length === 0 ? "" : `\n${JSON.stringify(calls)}`;
    return `<|im_start|>${message.role}\n${textOfMessage(message)}${called}<|im_end|>\n`;
  });
  checkImages(messages, options.imagesMax);
  const tools = options.tools.length === 0
    ? ""
    : `<|im_start|>system\n# Tools\n${JSON.stringify(options.tools)}<|im_end|>\n`;
  const head = options.generationPrompt ? "<|im_start|>assistant\n" : "";
  return tools + turns.join("") + head;
}

/** The text parts of a message, one after another. */
export function textOfMessage(message: Message): string {
  const { content } = message;
  if (content === null || content === undefined) return "";
  if (typeof content === "string") return content;
  return content.map(textOfPart).join("");
}

function textOfPart(part: z.infer<typeof partSchema>): string {
  switch (part.type) {
    case "text":
    case "input_text":
    case "refusal":
      return part.text ?? "";
    case "image_url":
      return "<|image|>".repeat(IMAGE_TOKENS);
    default:
      throw new RequestError(
        400,
        `Content parts of type "${part.type}" are not supported by this model.`,
        "messages",
      );
  }
}

function checkImages(messages: readonly Message[], imagesMax: number): void {
  const images =
    messages.flatMap((message) =>
      Array.isArray(message.content) ? message.content.filter((p) => p.type === "image_url") : []
    ).length;
  if (images <= imagesMax) return;
  throw new RequestError(
    400,
    `At most ${imagesMax} image(s) may be provided in one prompt, got ${images}.`,
    "messages",
  );
}
