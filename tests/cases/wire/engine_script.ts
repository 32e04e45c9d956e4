/** What a scripted engine says, as bytes and the places where they are flushed. */
import { Buffer } from "node:buffer";
import { gzipSync } from "node:zlib";
import type { Upstream } from "../case_schema.ts";

export interface Script {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The body in the pieces in which it is written. */
  readonly pieces: readonly Uint8Array[];
  readonly gapMs: number;
  readonly firstByteDelayMs: number;
  /** Nothing is said at all, not even a head. */
  readonly mute: boolean;
  readonly end: Upstream["end"];
  /** The whole body before it was cut short or compressed, to compare with. */
  readonly body: Uint8Array;
}

/** Builds the script of one call. `read` gives a file of the case's folder. */
export function scriptOf(upstream: Upstream, read: (file: string) => Uint8Array): Script {
  const body = bodyOf(upstream, read);
  const encoded = upstream.encode === "gzip" ? gzipSync(body) : body;
  const sent = upstream.bytes === undefined ? encoded : encoded.subarray(0, upstream.bytes);
  return {
    status: upstream.status,
    headers: {
      ...defaultType(upstream),
      ...upstream.headers,
      ...(upstream.encode === undefined ? {} : { "content-encoding": upstream.encode }),
    },
    pieces: piecesOf(sent, placesOf(upstream.cuts, sent)),
    gapMs: upstream.gap_ms,
    firstByteDelayMs: upstream.first_byte_delay_ms,
    mute: upstream.bytes === 0,
    end: upstream.end,
    body,
  };
}

function defaultType({ file }: Upstream): Record<string, string> {
  if (file?.endsWith(".sse")) return { "content-type": "text/event-stream" };
  if (file?.endsWith(".html")) return { "content-type": "text/html" };
  return { "content-type": "application/json" };
}

function bodyOf(
  { file, body, generate }: Upstream,
  read: (file: string) => Uint8Array,
): Uint8Array {
  if (file !== undefined) return read(file);
  if (generate !== undefined) return Buffer.from(oneDelta(generate.content_bytes));
  if (body === undefined) return new Uint8Array(0);
  return Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
}

/** A chat stream with all of its content in one event. */
function oneDelta(bytes: number): string {
  const chunk = (delta: unknown, finish_reason: string | null) =>
    `data: ${
      JSON.stringify({
        id: "chatcmpl-fx1",
        object: "chat.completion.chunk",
        created: 1_700_000_000,
        model: "fx-chat",
        choices: [{ index: 0, delta, finish_reason }],
      })
    }\n\n`;
  return chunk({ content: "x".repeat(bytes) }, null) + chunk({}, "stop") + "data: [DONE]\n\n";
}

/** Offsets inside `bytes`, in order. Throws for a place in words that it does not know. */
export function placesOf(cuts: Upstream["cuts"], bytes: Uint8Array): number[] {
  if (Array.isArray(cuts)) {
    return sorted(
      cuts.flatMap((cut) => typeof cut === "number" ? [cut] : placeInWords(cut, bytes)),
    );
  }
  switch (cuts) {
    case "none":
      return [];
    case "every-byte":
      return Array.from({ length: Math.max(0, bytes.length - 1) }, (_, index) => index + 1);
    case "per-event":
      return sorted(["\n\n", "\r\n\r\n", "\r\r"].flatMap((end) => between(bytes, end, "")));
    case "mid-codepoint":
      return sorted(
        [...bytes.keys()].filter((index) => ((bytes[index] ?? 0) & 0xc0) === 0x80),
      );
  }
}

const NAMES: Readonly<Record<string, string>> = { cr: "\r", lf: "\n" };

function placeInWords(words: string, bytes: Uint8Array): number[] {
  const inside = /^inside (.+)$/.exec(words)?.[1];
  if (inside !== undefined) {
    return occurrences(bytes, inside).map((at) => at + Math.ceil(inside.length / 2));
  }
  const pair = /^between[ -](.+?)[ -]and[ -](.+)$/.exec(words);
  if (pair === null) throw new Error(`Cannot cut at "${words}": no such place`);
  const [before, after] = [pair[1] ?? "", pair[2] ?? ""].map((text) =>
    NAMES[text] ?? text.replaceAll("\\n", "\n").replaceAll("\\r", "\r")
  );
  return between(bytes, before ?? "", after ?? "");
}

/** Behind each `before` that `after` follows. */
function between(bytes: Uint8Array, before: string, after: string): number[] {
  return occurrences(bytes, before + after).map((at) => at + before.length);
}

function occurrences(bytes: Uint8Array, text: string): number[] {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const found: number[] = [];
  for (let at = buffer.indexOf(text); at >= 0; at = buffer.indexOf(text, at + 1)) found.push(at);
  return found;
}

function sorted(places: readonly number[]): number[] {
  return [...new Set(places)].sort((a, b) => a - b);
}

function piecesOf(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  let from = 0;
  for (const to of [...places, bytes.length]) {
    if (to > from && to <= bytes.length) pieces.push(bytes.subarray(from, to));
    from = Math.max(from, Math.min(to, bytes.length));
  }
  return pieces;
}
