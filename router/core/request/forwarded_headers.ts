/**
 * What of a client's headers an engine gets: nothing but what is listed here. Versions and betas of
 * the Messages API change what an engine may answer, so these go with their request.
 */
import type { RequestHeaders } from "./credential.ts";
import type { InferenceRoute } from "./route.ts";

const MESSAGES_PREFIX = "anthropic-";

/** What the upstream client would refuse to write: a client must not be able to cause that. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

export function forwardedHeaders(
  { errors }: InferenceRoute,
  headers: RequestHeaders,
): Readonly<Record<string, string>> {
  if (errors !== "anthropic") return {};
  const forwarded: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (!name.startsWith(MESSAGES_PREFIX) || value === undefined) continue;
    const text = typeof value === "string" ? value : value.join(", ");
    if (VALUE.test(text)) forwarded[name] = text;
  }
  return forwarded;
}
