/**
 * How many tokens a prompt may have, from the length of its JSON: for timeouts, reservations, and
 * records of requests whose engine never got to say. Images and sound inside the body are long and
 * have few tokens, so each counts as one lump.
 */
import type { JsonBody } from "./json_body.ts";

/** Bytes of JSON per token in ordinary text. Code and other scripts differ; nothing exact hangs on it. */
const BYTES_PER_TOKEN = 4;
/** What one image or clip costs in today's models, in round numbers. */
const TOKENS_PER_ATTACHMENT = 1_000;

export function estimatePromptTokens(
  { textBytes, attachments }: Pick<JsonBody, "textBytes" | "attachments">,
): number {
  return Math.ceil(textBytes / BYTES_PER_TOKEN) + attachments * TOKENS_PER_ATTACHMENT;
}
