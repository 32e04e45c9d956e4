/**
 * Bounds for a body before any parser sees it. Objects take some twenty times the memory of their
 * text, and nesting more: one body of the largest size would take gigabytes and hold up every
 * other request for seconds.
 */
import type { JsonInvalid } from "../json/json_scan.ts";
import { type JsonText, stringEnd } from "../json/json_text.ts";

/** Deeper than any schema or template nests. */
const DEPTH_MAX = 256;
/** Arrays, objects and members together. A conversation of ten thousand turns has some 100,000. */
const PARTS_MAX = 2 ** 20;
/** Smaller bodies can do no harm, and are nearly all of them: whoever parses them counts levels too. */
const HARMLESS_BYTES = 16_384;

const QUOTE = 0x22;
const COLON = 0x3a;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/** What is beyond the bounds; undefined for text within them, which may be anything but JSON. */
export function beyondBounds(json: JsonText): JsonInvalid | undefined {
  const { bytes } = json;
  if (bytes.length <= HARMLESS_BYTES) return undefined;
  let depth = 0;
  let parts = 0;
  for (let at = 0; at < bytes.length; at++) {
    switch (bytes[at]) {
      case QUOTE:
        at = stringEnd(json, at) - 1;
        break;
      case OPEN_BRACE:
      case OPEN_BRACKET:
        if (++depth > DEPTH_MAX) {
          return invalid("too_deep", at, `Nested more than ${DEPTH_MAX} levels deep`);
        }
        if (++parts > PARTS_MAX) return tooMany(at);
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        depth--;
        break;
      case COLON:
        if (++parts > PARTS_MAX) return tooMany(at);
    }
  }
  return undefined;
}

function tooMany(offset: number): JsonInvalid {
  return invalid("too_many", offset, `More than ${PARTS_MAX} arrays, objects and members`);
}

function invalid(reason: JsonInvalid["reason"], offset: number, what: string): JsonInvalid {
  return { kind: "invalid", reason, offset, detail: `${what} at byte ${offset}` };
}
