/** Changes members of a JSON object in its bytes and leaves every other byte as it is. */
import {
  type JsonInvalid,
  type JsonMember,
  type JsonObject,
  memberOf,
  memberValue,
  scanObject,
} from "./json/json_scan.ts";

/** `json` is the value as JSON text. Setting a member that is not there adds it at the end. */
export type MemberEdit =
  | { readonly kind: "set"; readonly key: string; readonly json: string }
  | { readonly kind: "remove"; readonly key: string };

/** Bytes from `start` to `end` give way to `text`. */
interface Cut {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/**
 * `bytes` with the edits applied to the members that `object` (scanned from the same bytes) names;
 * the same array when nothing changes. Of two edits to one key the last one counts. A removed
 * member takes one comma and the white space beside it along.
 */
export function splice(
  bytes: Uint8Array,
  object: JsonObject,
  edits: readonly MemberEdit[],
): Uint8Array {
  const byKey = new Map(edits.map((edit) => [edit.key, edit]));
  const cuts: Cut[] = [];
  /** Where the member kept last ends, and where the removed ones after it begin. */
  let kept: JsonMember | undefined;
  let removedFrom: number | undefined;
  for (const member of object.members) {
    const edit = byKey.get(member.key);
    if (edit?.kind === "remove") {
      removedFrom ??= member.keyStart;
      continue;
    }
    if (removedFrom !== undefined) {
      cuts.push({ start: removedFrom, end: member.keyStart, text: "" });
    }
    removedFrom = undefined;
    kept = member;
    if (edit !== undefined) {
      cuts.push({ start: member.valueStart, end: member.valueEnd, text: edit.json });
    }
  }
  const last = object.members.at(-1);
  if (last !== undefined && removedFrom !== undefined) {
    // Nothing follows: the comma to go along is the one before.
    cuts.push({ start: kept?.valueEnd ?? removedFrom, end: last.valueEnd, text: "" });
  }
  const added = addedMembers(object, byKey);
  if (added.length > 0) {
    const end = last?.valueEnd ?? object.open + 1;
    cuts.push({ start: end, end, text: (kept === undefined ? "" : ",") + added.join(",") });
  }
  return apply(bytes, cuts);
}

/**
 * The edit that makes an engine report usage in a stream: `stream_options.include_usage` set to
 * true, with the client's other options kept. Undefined when it is true already. A fault when
 * `stream_options` is neither an object nor null.
 */
export function includeUsage(
  bytes: Uint8Array,
  object: JsonObject,
): MemberEdit | JsonInvalid | undefined {
  const set = (json: string): MemberEdit => ({ kind: "set", key: "stream_options", json });
  const member = memberOf(object, "stream_options");
  if (member === undefined || memberValue(bytes, member) === null) {
    return set('{"include_usage":true}');
  }
  const text = bytes.subarray(member.valueStart, member.valueEnd);
  const options = scanObject(text);
  if (options.kind === "invalid") {
    return {
      ...options,
      offset: options.offset + member.valueStart,
      detail: `stream_options: ${options.detail}`,
    };
  }
  const asked = memberOf(options, "include_usage");
  if (asked !== undefined && memberValue(text, asked) === true) return undefined;
  const edited = splice(text, options, [{ kind: "set", key: "include_usage", json: "true" }]);
  return set(new TextDecoder("utf-8", { ignoreBOM: true }).decode(edited));
}

function addedMembers(object: JsonObject, byKey: ReadonlyMap<string, MemberEdit>): string[] {
  const there = new Set(object.members.map((member) => member.key));
  const added: string[] = [];
  for (const edit of byKey.values()) {
    if (edit.kind === "set" && !there.has(edit.key)) {
      added.push(`${JSON.stringify(edit.key)}:${edit.json}`);
    }
  }
  return added;
}

/** `cuts` in order and apart. */
function apply(bytes: Uint8Array, cuts: readonly Cut[]): Uint8Array {
  if (cuts.length === 0) return bytes;
  const texts = cuts.map((cut) => new TextEncoder().encode(cut.text));
  const removed = cuts.reduce((sum, cut) => sum + cut.end - cut.start, 0);
  const added = texts.reduce((sum, text) => sum + text.length, 0);
  const out = new Uint8Array(bytes.length - removed + added);
  let from = 0;
  let to = 0;
  const copy = (part: Uint8Array): void => {
    out.set(part, to);
    to += part.length;
  };
  cuts.forEach((cut, index) => {
    copy(bytes.subarray(from, cut.start));
    copy(texts[index] ?? new Uint8Array(0));
    from = cut.end;
  });
  copy(bytes.subarray(from));
  return out;
}
