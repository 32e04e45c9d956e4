/**
 * Finds the top-level members of a JSON object in its original bytes, so that a router can change
 * its own members and send the rest as it came: a round trip through JSON.parse rounds big integers
 * and rewrites numbers.
 */

/** One member. Offsets are bytes from the start of the text; ends are exclusive. */
export interface JsonMember {
  /** Decoded: `"mod\u0065l"` is `model`. */
  readonly key: string;
  readonly keyStart: number;
  readonly keyEnd: number;
  readonly valueStart: number;
  readonly valueEnd: number;
}

export interface JsonObject {
  readonly kind: "object";
  /** In the order of the text. */
  readonly members: readonly JsonMember[];
  /** Offset of "{" and of its "}". */
  readonly open: number;
  readonly close: number;
}

export type JsonFault =
  /** Not JSON. */
  | "syntax"
  /** JSON, but not an object. */
  | "not_object"
  /** Two members of one name, plain or escaped: two readers could each take another. */
  | "duplicate_key"
  | "too_deep";

export interface JsonInvalid {
  readonly kind: "invalid";
  readonly reason: JsonFault;
  /** Byte offset of the fault. */
  readonly offset: number;
  /** A sentence for the client, with the position. */
  readonly detail: string;
}

export interface JsonScanOptions {
  /** Deepest nesting of arrays and objects. @default 256 */
  readonly depthMax?: number;
}

/** Reads `bytes` as one JSON object with nothing but white space around it. Never throws. */
export function scanObject(
  _bytes: Uint8Array,
  _options?: JsonScanOptions,
): JsonObject | JsonInvalid {
  throw new Error("not built yet");
}

/** The member of that name. */
export function memberOf(object: JsonObject, key: string): JsonMember | undefined {
  return object.members.find((member) => member.key === key);
}

/** The parsed value of a member that `scanObject` found in these bytes. */
export function memberValue(bytes: Uint8Array, member: JsonMember): unknown {
  return JSON.parse(new TextDecoder().decode(bytes.subarray(member.valueStart, member.valueEnd)));
}
