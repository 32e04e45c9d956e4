/**
 * Finds the top-level members of text that is known to be JSON. What is known need not be checked
 * again: strings, of which prompts consist, are stepped over natively.
 */
import type { JsonMember, JsonObject } from "./json_scan.ts";

const DEPTH_MAX = 256;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const SPACE_MAX = 0x20;

/**
 * What `scanObject` gives for the same bytes; undefined when it would refuse them after all (a name
 * that stands twice, too deep), or is to be asked for another reason. `bytes` must parse as an object.
 */
export function quickObject(bytes: Uint8Array): JsonObject | undefined {
  const open = spaceEnd(bytes, 0);
  const members: JsonMember[] = [];
  const keys = new Set<string>();
  let at = spaceEnd(bytes, open + 1);
  while (bytes[at] === QUOTE) {
    const keyStart = at;
    const keyEnd = stringEnd(bytes, keyStart);
    const key = decoded(bytes, keyStart, keyEnd);
    if (keys.has(key)) return undefined;
    keys.add(key);
    // Behind the colon.
    const valueStart = spaceEnd(bytes, spaceEnd(bytes, keyEnd) + 1);
    const valueEnd = endOfValue(bytes, valueStart);
    if (valueEnd === undefined) return undefined;
    members.push({ key, keyStart, keyEnd, valueStart, valueEnd });
    at = spaceEnd(bytes, valueEnd);
    if (bytes[at] === COMMA) at = spaceEnd(bytes, at + 1);
  }
  return bytes[open] === OPEN_BRACE && bytes[at] === CLOSE_BRACE
    ? { kind: "object", members, open, close: at }
    : undefined;
}

function endOfValue(bytes: Uint8Array, start: number): number | undefined {
  const first = bytes[start];
  if (first === QUOTE) return stringEnd(bytes, start);
  if (first === OPEN_BRACE || first === OPEN_BRACKET) return endOfContainer(bytes, start);
  let at = start;
  while (!isEndOfScalar(bytes[at])) at++;
  return at;
}

function isEndOfScalar(byte: number | undefined): boolean {
  return byte === undefined || byte <= SPACE_MAX || byte === COMMA || byte === CLOSE_BRACE;
}

function endOfContainer(bytes: Uint8Array, start: number): number | undefined {
  let depth = 0;
  for (let at = start; at < bytes.length; at++) {
    switch (bytes[at]) {
      case QUOTE:
        at = stringEnd(bytes, at) - 1;
        break;
      case OPEN_BRACE:
      case OPEN_BRACKET:
        if (++depth >= DEPTH_MAX) return undefined;
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        if (--depth === 0) return at + 1;
    }
  }
  return undefined;
}

/** Behind the string that begins at `start`. */
function stringEnd(bytes: Uint8Array, start: number): number {
  for (let at = bytes.indexOf(QUOTE, start + 1); at >= 0; at = bytes.indexOf(QUOTE, at + 1)) {
    let backslashes = 0;
    while (bytes[at - 1 - backslashes] === BACKSLASH) backslashes++;
    // An even number of them are themselves escaped.
    if (backslashes % 2 === 0) return at + 1;
  }
  return bytes.length;
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
