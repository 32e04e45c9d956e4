/**
 * Finds the top-level members of text that is known to be JSON. What is known need not be checked
 * again: strings, of which prompts consist, are stepped over natively.
 */
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from "./json_bytes.ts";
import type { JsonMember, JsonObject } from "./json_scan.ts";
import { type JsonText, stringEnd } from "./json_text.ts";

export interface QuickObject {
  readonly object: JsonObject;
  /** Members that are written at any depth. An object that was read has fewer when one stands twice. */
  readonly memberCount: number;
}

const DEPTH_MAX = 256;
const SPACE_MAX = 0x20;

/**
 * What `scanObject` gives for the same bytes; undefined when it would refuse them after all (too
 * deep), or is to be asked for another reason. Names that stand twice are for the caller to find, by
 * their count. `json` must parse as an object.
 */
export function quickObject(json: JsonText): QuickObject | undefined {
  const { bytes } = json;
  const open = spaceEnd(bytes, 0);
  const members: JsonMember[] = [];
  let memberCount = 0;
  let at = spaceEnd(bytes, open + 1);
  while (bytes[at] === QUOTE) {
    const keyStart = at;
    const keyEnd = stringEnd(json, keyStart);
    const key = decoded(bytes, keyStart, keyEnd);
    // Behind the colon.
    const valueStart = spaceEnd(bytes, spaceEnd(bytes, keyEnd) + 1);
    const value = endOfValue(json, valueStart);
    if (value === undefined) return undefined;
    members.push({ key, keyStart, keyEnd, valueStart, valueEnd: value.end });
    memberCount += 1 + value.memberCount;
    at = spaceEnd(bytes, value.end);
    if (bytes[at] === COMMA) at = spaceEnd(bytes, at + 1);
  }
  return bytes[open] === OPEN_BRACE && bytes[at] === CLOSE_BRACE
    ? { object: { kind: "object", members, open, close: at }, memberCount }
    : undefined;
}

/** Where a value ends, and the members that are written in it. */
interface ValueEnd {
  readonly end: number;
  readonly memberCount: number;
}

function endOfValue(json: JsonText, start: number): ValueEnd | undefined {
  const { bytes } = json;
  const first = bytes[start];
  if (first === QUOTE) return { end: stringEnd(json, start), memberCount: 0 };
  if (first === OPEN_BRACE || first === OPEN_BRACKET) return endOfContainer(json, start);
  let end = start;
  while (!isEndOfScalar(bytes[end])) end++;
  return { end, memberCount: 0 };
}

function isEndOfScalar(byte: number | undefined): boolean {
  return byte === undefined || byte <= SPACE_MAX || byte === COMMA || byte === CLOSE_BRACE;
}

function endOfContainer(json: JsonText, start: number): ValueEnd | undefined {
  const { bytes } = json;
  let depth = 0;
  let memberCount = 0;
  for (let at = start; at < bytes.length; at++) {
    switch (bytes[at]) {
      case QUOTE:
        at = stringEnd(json, at) - 1;
        break;
      case COLON:
        memberCount++;
        break;
      case OPEN_BRACE:
      case OPEN_BRACKET:
        if (++depth >= DEPTH_MAX) return undefined;
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        if (--depth === 0) return { end: at + 1, memberCount };
    }
  }
  return undefined;
}

function spaceEnd(bytes: Uint8Array, from: number): number {
  let at = from;
  while ((bytes[at] ?? QUOTE) <= SPACE_MAX) at++;
  return at;
}

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

/** Nearly all keys are short and plain: decoded by hand. */
function decoded(bytes: Uint8Array, start: number, end: number): string {
  let plain = "";
  for (let at = start + 1; at < end - 1; at++) {
    const byte = bytes[at] ?? 0;
    if (byte === BACKSLASH || byte > 0x7f) {
      return String(JSON.parse(utf8.decode(bytes.subarray(start, end))));
    }
    plain += String.fromCharCode(byte);
  }
  return plain;
}
