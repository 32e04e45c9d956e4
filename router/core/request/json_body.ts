/** Reads a JSON body once, for everything that the router wants to know of it. */
import { quickObject } from "../json/json_quick.ts";
import { type JsonInvalid, type JsonObject, scanObject } from "../json/json_scan.ts";
import { type JsonText, jsonText } from "../json/json_text.ts";
import { beyondBounds } from "./json_bounds.ts";

export interface JsonBody {
  readonly kind: "body";
  readonly bytes: Uint8Array;
  readonly object: JsonObject;
  /** `text`, parsed. */
  readonly value: Readonly<Record<string, unknown>>;
  /** As JSON; instead of the contents of a long data: URL it has "#" and their number in `data`. */
  readonly text: string;
  readonly data: readonly string[];
  /** Bytes of the body less what was left out. */
  readonly textBytes: number;
  /** Images, clips and files that the body brings along. */
  readonly attachments: number;
}

const MARK = ";base64,";

/** Runs of base64 up to this are not worth leaving out. */
const RUN_CHARS_MIN = 1_024;

/** What was left out is not checked to be free of control characters; engines will. */
export function readJsonBody(bytes: Uint8Array): JsonBody | JsonInvalid {
  const decoded = utf8.decode(bytes);
  const json = jsonText(bytes, decoded);
  const beyond = beyondBounds(json);
  if (beyond !== undefined) return beyond;
  const { text, data, attachments } = withoutData(decoded);
  const value = parsed(text);
  if (!isObject(value)) return refused(bytes);
  const object = objectOf(json, value);
  if (object.kind === "invalid") return object;
  // Base64 has a byte for each character.
  const textBytes = bytes.length - data.reduce((sum, { length }) => sum + length, 0);
  return { kind: "body", bytes, object, value, text, data, textBytes, attachments };
}

/**
 * Of members with one name only the last is read: where as many were read as are written, none
 * stands twice, at any depth. The strict scanner, which is slower, says which one does.
 */
function objectOf(json: JsonText, value: unknown): JsonObject | JsonInvalid {
  const quick = quickObject(json);
  return quick !== undefined && quick.memberCount === memberCount(value)
    ? quick.object
    : scanObject(json.bytes);
}

/** Members of all objects in `value`, which was parsed from JSON. Without recursion. */
function memberCount(value: unknown): number {
  const open: object[] = typeof value === "object" && value !== null ? [value] : [];
  let count = 0;
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const inner: readonly unknown[] = Array.isArray(next) ? next : Object.values(next);
    if (!Array.isArray(next)) count += inner.length;
    for (const item of inner) if (typeof item === "object" && item !== null) open.push(item);
  }
  return count;
}

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

/**
 * `json` with the long contents of data: URLs left out: reading an image of megabytes would hold up
 * every other request, and its contents say nothing here.
 */
function withoutData(json: string): Pick<JsonBody, "text" | "data" | "attachments"> {
  const parts: string[] = [];
  const data: string[] = [];
  let from = 0;
  let attachments = 0;
  for (let at = json.indexOf(MARK); at >= 0; at = json.indexOf(MARK, at + MARK.length)) {
    attachments++;
    const start = at + MARK.length;
    const end = json.indexOf('"', start);
    if (end - start < RUN_CHARS_MIN) continue;
    // After a backslash the quote might not end the text.
    if (json.slice(start, end).includes("\\")) continue;
    // No base64 has a "#".
    parts.push(json.slice(from, start), `#${data.length}`);
    data.push(json.slice(start, end));
    from = end;
  }
  return { text: from === 0 ? json : parts.join("") + json.slice(from), data, attachments };
}

/** The strict scanner says what is wrong, and where. */
function refused(bytes: Uint8Array): JsonInvalid {
  const scanned = scanObject(bytes);
  return scanned.kind === "invalid"
    ? scanned
    : { kind: "invalid", reason: "syntax", offset: 0, detail: "The body is not JSON" };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
