/** Takes an engine's answer apart, however its bytes are cut: head, body without framing, end. */
import { Buffer } from "node:buffer";
import { type Framing, readHead, type ResponseHead } from "./upstream_head.ts";
import type { UpstreamFailure } from "./upstream_error.ts";

/** Told in order: `head` once, `data` any number of times, then one of `end` and `fault`. */
export interface AnswerSink {
  head(head: ResponseHead): void;
  data(bytes: Uint8Array): void;
  end(): void;
  fault(reason: UpstreamFailure, message: string): void;
}

export interface AnswerParserOptions {
  /** The request's: the answer to HEAD has no body. */
  readonly method: string;
  /** Bound for the head, for interim heads together, and for trailers. */
  readonly headBytesMax: number;
}

const LF = 10;
const CR = 13;
/** Longest chunk-size line, extensions included. No engine sends extensions. */
const CHUNK_LINE_BYTES_MAX = 1_024;
/** Digits of a chunk's size that are read at once: 256 MiB. */
const PLAIN_DIGITS_MAX = 8;
const CHUNK_LINE = /^([0-9A-Fa-f]{1,12})[ \t]*(?:;[\t\x20-\x7e\x80-\xff]*)?$/;

type State =
  | "head"
  | "length"
  | "close"
  | "chunk_line"
  | "chunk_data"
  | "chunk_end"
  | "trailers"
  | "done";

export class AnswerParser {
  readonly #sink: AnswerSink;
  readonly #options: AnswerParserOptions;
  #state: State = "head";
  /** Bytes left of the body or of the chunk. */
  #left = 0;
  /** The line or head under way, when a chunk ended inside it. */
  #line: Uint8Array = new Uint8Array(0);
  #lineBytes = 0;
  /** Head and trailer bytes so far, against `headBytesMax`. */
  #headBytes = 0;

  constructor(sink: AnswerSink, options: AnswerParserOptions) {
    this.#sink = sink;
    this.#options = options;
  }

  get done(): boolean {
    return this.#state === "done";
  }

  /**
   * Takes the next bytes and returns how many belong to this answer; fewer than given only when it
   * is over (or broken): the rest is nothing that we asked for.
   */
  push(chunk: Uint8Array): number {
    let at = 0;
    while (at < chunk.length && this.#state !== "done") at = this.#step(chunk, at);
    return at;
  }

  /** The engine ended the connection. */
  eof(): void {
    if (this.#state === "done") return;
    if (this.#state === "close") return this.#finish();
    if (this.#state === "head") {
      const seen = this.#lineBytes > 0
        ? `after ${this.#lineBytes} bytes of a head`
        : "before an answer";
      return this.#fail("reset_before_head", `the connection ended ${seen}`);
    }
    this.#fail("cut", "the connection ended inside the body");
  }

  #step(chunk: Uint8Array, at: number): number {
    switch (this.#state) {
      case "head":
        return this.#readHead(chunk, at);
      case "close":
        this.#sink.data(at === 0 ? chunk : chunk.subarray(at));
        return chunk.length;
      case "length":
      case "chunk_data":
        return this.#readData(chunk, at);
      case "chunk_line":
      case "chunk_end":
      case "trailers":
        return this.#readLine(chunk, at);
      case "done":
        return at;
    }
  }

  /** Looks for the empty line; reads up to it and no byte more. */
  #readHead(chunk: Uint8Array, at: number): number {
    for (let lf = chunk.indexOf(LF, at); lf >= 0; lf = chunk.indexOf(LF, lf + 1)) {
      const before = (back: number): number | undefined =>
        lf - back >= at ? chunk[lf - back] : this.#line[this.#lineBytes - (back - (lf - at))];
      if (before(1) !== CR || before(2) !== LF || before(3) !== CR) continue;
      if (!this.#keep(chunk.subarray(at, lf + 1), this.#options.headBytesMax)) return chunk.length;
      this.#headDone(this.#takeLine(4));
      return lf + 1;
    }
    this.#keep(chunk.subarray(at), this.#options.headBytesMax);
    return chunk.length;
  }

  #headDone(text: string): void {
    const head = readHead(text, this.#options.method);
    if (head.kind === "fault") return this.#fail("head_invalid", head.message);
    if (head.status === 101) return this.#fail("head_invalid", "it switches protocols unasked");
    // Interim answers only say "go on"; their bytes count against the same bound, so that an
    // engine cannot send them for ever.
    if (head.status < 200) return;
    this.#sink.head(head);
    if (this.#state !== "done") this.#begin(head.framing);
  }

  #begin(framing: Framing): void {
    switch (framing.kind) {
      case "none":
        return this.#finish();
      case "length":
        this.#left = framing.bytes;
        this.#state = "length";
        return;
      case "chunked":
        this.#headBytes = 0;
        this.#state = "chunk_line";
        return;
      case "close":
        this.#state = "close";
    }
  }

  #readData(chunk: Uint8Array, at: number): number {
    const end = Math.min(chunk.length, at + this.#left);
    this.#left -= end - at;
    const last = this.#left === 0;
    const chunked = this.#state === "chunk_data";
    if (last && chunked) this.#state = "chunk_end";
    this.#sink.data(chunk.subarray(at, end));
    if (last && !chunked && this.#state !== "done") this.#finish();
    return end;
  }

  #readLine(chunk: Uint8Array, at: number): number {
    const lf = chunk.indexOf(LF, at);
    const end = lf < 0 ? chunk.length : lf + 1;
    if (this.#lineBytes === 0 && this.#isPlainLine(chunk, at, lf)) return end;
    const max = this.#state === "trailers" ? this.#options.headBytesMax : CHUNK_LINE_BYTES_MAX;
    if (!this.#keep(chunk.subarray(at, end), max) || lf < 0) return end;
    if (this.#line[this.#lineBytes - 2] !== CR) {
      this.#fail("body_invalid", "a line of the chunked framing does not end in CR LF");
      return end;
    }
    this.#lineDone(this.#takeLine(2));
    return end;
  }

  /**
   * Lines of the chunked framing as nearly all are: whole, empty after a chunk or a few hexadecimal
   * digits before one. Any other is left to be read with care.
   */
  #isPlainLine(chunk: Uint8Array, at: number, lf: number): boolean {
    if (lf <= at || chunk[lf - 1] !== CR) return false;
    if (this.#state === "chunk_end" && lf === at + 1) {
      this.#state = "chunk_line";
      return true;
    }
    if (this.#state !== "chunk_line" || lf - 1 === at || lf - at > PLAIN_DIGITS_MAX) return false;
    let size = 0;
    for (let index = at; index < lf - 1; index++) {
      const digit = hexDigit(chunk[index] ?? 0);
      if (digit === undefined) return false;
      size = size * 16 + digit;
    }
    this.#left = size;
    this.#state = size === 0 ? "trailers" : "chunk_data";
    return true;
  }

  #lineDone(line: string): void {
    if (this.#state === "chunk_end") {
      if (line !== "") return this.#fail("body_invalid", "a chunk is longer than its size says");
      this.#state = "chunk_line";
      this.#headBytes = 0;
    } else if (this.#state === "trailers") {
      if (line === "") this.#finish();
    } else {
      const size = CHUNK_LINE.exec(line);
      if (size === null) {
        return this.#fail("body_invalid", `chunk size ${JSON.stringify(line.slice(0, 40))}`);
      }
      this.#left = Number.parseInt(size[1] ?? "", 16);
      this.#state = this.#left === 0 ? "trailers" : "chunk_data";
      this.#headBytes = 0;
    }
  }

  /** Adds to the line under way; false after it became too long. Doubles, so that cuts cost little. */
  #keep(bytes: Uint8Array, max: number): boolean {
    this.#headBytes += bytes.length;
    if (this.#headBytes > max) {
      const head = this.#state === "head";
      this.#fail(head ? "head_too_large" : "body_invalid", `more than ${max} bytes`);
      return false;
    }
    const need = this.#lineBytes + bytes.length;
    if (need > this.#line.length) {
      const grown = new Uint8Array(Math.min(max, Math.max(need, this.#line.length * 2, 512)));
      grown.set(this.#line.subarray(0, this.#lineBytes));
      this.#line = grown;
    }
    this.#line.set(bytes, this.#lineBytes);
    this.#lineBytes = need;
    return true;
  }

  /** The line under way as latin-1, less its terminator. */
  #takeLine(terminatorBytes: number): string {
    const bytes = this.#line.subarray(0, this.#lineBytes - terminatorBytes);
    this.#lineBytes = 0;
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
  }

  #finish(): void {
    this.#state = "done";
    this.#sink.end();
  }

  #fail(reason: UpstreamFailure, message: string): void {
    this.#state = "done";
    this.#sink.fault(reason, message);
  }
}

function hexDigit(byte: number): number | undefined {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : undefined;
}
