/** Changes members of a JSON object in its bytes and leaves every other byte as it is. */
import type { JsonInvalid, JsonObject } from "./json_scan.ts";

/** `json` is the value as JSON text. Setting a member that is not there adds it at the end. */
export type MemberEdit =
  | { readonly kind: "set"; readonly key: string; readonly json: string }
  | { readonly kind: "remove"; readonly key: string };

/**
 * `bytes` with the edits applied to the members that `object` (scanned from the same bytes) names;
 * the same array when nothing changes. At most one edit per key.
 */
export function splice(
  _bytes: Uint8Array,
  _object: JsonObject,
  _edits: readonly MemberEdit[],
): Uint8Array {
  throw new Error("not built yet");
}

/**
 * The edit that makes an engine report usage in a stream: `stream_options.include_usage` set to
 * true, with the client's other options kept. Undefined when it is true already. A fault when
 * `stream_options` is neither an object nor null, or names an option twice.
 */
export function includeUsage(
  _bytes: Uint8Array,
  _object: JsonObject,
): MemberEdit | JsonInvalid | undefined {
  throw new Error("not built yet");
}
