import type { UpstreamResponse } from "../upstream.ts";

/** Reads a body to its end or to `bytesMax`, whichever comes first. `whole` says which. */
export async function readWhole(
  answer: UpstreamResponse,
  bytesMax: number,
): Promise<{ readonly bytes: Uint8Array; readonly whole: boolean }> {
  const parts: Uint8Array[] = [];
  let length = 0;
  let whole = true;
  for await (const part of answer.body) {
    parts.push(part);
    length += part.length;
    if (length <= bytesMax) continue;
    whole = false;
    break;
  }
  if (parts.length === 1 && parts[0] !== undefined) return { bytes: parts[0], whole };
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return { bytes, whole };
}
