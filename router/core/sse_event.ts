/** What one server-sent event says, read from its bytes when first asked. */

const LF = 10;
const CR = 13;
const COLON = 58;
const SPACE = 32;
/** "data" as bytes: the one field name worth a fast test. */
const DATA = [100, 97, 116, 97];
const BOM = [0xef, 0xbb, 0xbf];

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

/**
 * One event, or what lies between events, with its bytes as they came, terminator included. What
 * it says is decoded when first asked for.
 */
export interface SseEvent {
  readonly raw: Uint8Array;
  /** False only for what `end()` returns when the stream broke off inside an event. */
  readonly complete: boolean;
  /** The `event:` field, "" without one. */
  readonly name: string;
  /** The `data:` lines joined with "\n"; undefined when there is no data line. */
  readonly data: string | undefined;
  /** Comments and nothing else: a heartbeat. */
  readonly isComment: boolean;
  /** `data: [DONE]`. */
  readonly isDone: boolean;
  /**
   * Nothing a client should see as an event: comments, fields without data, empty data, blank
   * lines, a byte order mark. Some official SDKs throw on such events, so a relay drops them.
   */
  readonly isSilent: boolean;
}

interface Fields {
  readonly name: string;
  readonly data: string | undefined;
  readonly comments: number;
  readonly others: number;
}

/** An event over `raw`; `complete` is false for the rest of a stream that broke off. */
export function sseEvent(raw: Uint8Array, complete: boolean): SseEvent {
  return new LazyEvent(raw, complete);
}

/** A class, because a stream makes thousands of these: getters on a prototype cost nothing to make. */
class LazyEvent implements SseEvent {
  readonly raw: Uint8Array;
  readonly complete: boolean;
  #fields: Fields | undefined;

  constructor(raw: Uint8Array, complete: boolean) {
    this.raw = raw;
    this.complete = complete;
  }

  get name(): string {
    return this.#read().name;
  }

  get data(): string | undefined {
    return this.#read().data;
  }

  get isComment(): boolean {
    const fields = this.#read();
    return fields.comments > 0 && fields.others === 0 && fields.data === undefined;
  }

  get isDone(): boolean {
    return this.#read().data?.trim() === "[DONE]";
  }

  get isSilent(): boolean {
    const data = this.#read().data;
    return data === undefined || data.trim() === "";
  }

  #read(): Fields {
    return this.#fields ??= readFields(this.raw);
  }
}

function readFields(raw: Uint8Array): Fields {
  let name = "";
  let data: string | undefined;
  let comments = 0;
  let others = 0;
  for (let at = isBom(raw) ? raw.length : 0; at < raw.length;) {
    const end = lineEnd(raw, at);
    if (end > at) {
      const colon = raw.subarray(at, end).indexOf(COLON);
      if (colon === 0) comments++;
      else if (isData(raw, at, colon < 0 ? end : at + colon)) {
        const value = valueOf(raw, at, end, colon);
        data = data === undefined ? value : `${data}\n${value}`;
      } else {
        others++;
        const field = utf8.decode(raw.subarray(at, colon < 0 ? end : at + colon));
        if (field === "event") name = valueOf(raw, at, end, colon);
      }
    }
    at = end + (raw[end] === CR && raw[end + 1] === LF ? 2 : 1);
  }
  return { name, data, comments, others };
}

/** The framer sets the mark at a stream's start apart; anywhere else these bytes are content. */
function isBom(raw: Uint8Array): boolean {
  return raw.length === BOM.length && BOM.every((byte, index) => raw[index] === byte);
}

/** Offset of the first CR or LF from `at` on, or the end. */
function lineEnd(raw: Uint8Array, at: number): number {
  const lf = raw.indexOf(LF, at);
  const end = lf < 0 ? raw.length : lf;
  const cr = raw.subarray(at, end).indexOf(CR);
  return cr < 0 ? end : at + cr;
}

function isData(raw: Uint8Array, start: number, end: number): boolean {
  return end - start === DATA.length && DATA.every((byte, index) => raw[start + index] === byte);
}

/** The text after the colon, less one space. `colon` is relative to `start`, -1 for none. */
function valueOf(raw: Uint8Array, start: number, end: number, colon: number): string {
  if (colon < 0) return "";
  const from = start + colon + 1;
  return utf8.decode(raw.subarray(from < end && raw[from] === SPACE ? from + 1 : from, end));
}
