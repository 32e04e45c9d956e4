/**
 * How many tokens a prompt may have, from the length of its JSON: for timeouts, reservations, and
 * records of requests whose engine never got to say. Images and sound inside the body are long and
 * have few tokens, so each counts as one lump.
 */

/** Bytes of JSON per token in ordinary text. Code and other scripts differ; nothing exact hangs on it. */
const BYTES_PER_TOKEN = 4;
/** What one image or clip costs in today's models, in round numbers. */
const TOKENS_PER_ATTACHMENT = 1_000;

const MARK = new TextEncoder().encode(";base64,");
const QUOTE = 0x22;

export function estimatePromptTokens(json: Uint8Array): number {
  let textBytes = json.length;
  let attachments = 0;
  for (let at = json.indexOf(MARK[0] ?? 0); at >= 0; at = json.indexOf(MARK[0] ?? 0, at + 1)) {
    if (!MARK.every((byte, index) => json[at + index] === byte)) continue;
    const quote = json.indexOf(QUOTE, at);
    const end = quote < 0 ? json.length : quote;
    textBytes -= end - at;
    attachments++;
    at = end;
  }
  return Math.ceil(textBytes / BYTES_PER_TOKEN) + attachments * TOKENS_PER_ATTACHMENT;
}
