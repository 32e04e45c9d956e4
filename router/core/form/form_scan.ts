/**
 * Finds the parts of a multipart/form-data body as it arrives, in whatever pieces, without keeping
 * the files: only where each part lies, and the text of small ones.
 *
 * Strict: what one parser could read as another part, or as another name, than the next one does is
 * refused. The part that authorises and the engine must see the same form.
 */
import { type PartHead, readPartHead } from "./part_head.ts";

/** One part. Offsets are bytes from the body's start; ends are exclusive. */
export interface FormPart extends PartHead {
  /** From its delimiter to the next one's: what goes when the part is taken out. */
  readonly start: number;
  readonly end: number;
  readonly bodyStart: number;
  readonly bodyEnd: number;
  /** The body as text; undefined for files and for what is too long for a field. */
  readonly text: string | undefined;
}

export interface FormInvalid {
  readonly kind: "invalid";
  /** A sentence for the client. */
  readonly detail: string;
}

/** Longest head of a part; names and file names are short. */
const HEAD_BYTES_MAX = 8_192;
/** Longest field that is read; prompts are longer and not the router's to read. */
const TEXT_BYTES_MAX = 1_024;
/** Forms of engines have a dozen fields. */
const PARTS_MAX = 128;

const CR = 13;
const LF = 10;
const DASH = 45;

type Phase = "start" | "after_delimiter" | "head" | "body" | "over";

/** A part that has begun. */
interface Begun {
  readonly start: number;
  head: PartHead | undefined;
  bodyStart: number;
  text: Uint8Array[] | undefined;
  textBytes: number;
}

export class FormScanner {
  /** CRLF, two dashes, the boundary: what ends a part. */
  readonly #delimiter: Uint8Array;
  readonly #parts: FormPart[] = [];
  #phase: Phase = "start";
  #rest = new Uint8Array(0);
  /** Offset of `#rest` in the body. */
  #offset = 0;
  #begun: Begun | undefined;
  #fault: FormInvalid | undefined;

  constructor(boundary: string) {
    this.#delimiter = new TextEncoder().encode(`\r\n--${boundary}`);
  }

  /** Takes the next piece. Returns a fault as soon as there is one, and from then on. */
  push(chunk: Uint8Array): FormInvalid | undefined {
    const bytes = joined(this.#rest, chunk);
    let at = 0;
    while (this.#fault === undefined) {
      const next = this.#step(bytes, at);
      if (next === undefined) break;
      at = next;
    }
    at = this.#fault === undefined ? this.#keepFrom(bytes, at) : bytes.length;
    this.#rest = bytes.slice(at);
    this.#offset += at;
    return this.#fault;
  }

  /** The parts in order, once all has been pushed. */
  end(): { readonly kind: "form"; readonly parts: readonly FormPart[] } | FormInvalid {
    if (this.#fault !== undefined) return this.#fault;
    if (this.#phase !== "over") return invalid("The form ends early: its last boundary is missing");
    return { kind: "form", parts: this.#parts };
  }

  /** Does what can be done at `at`. Returns where to go on, or undefined when more must come. */
  #step(bytes: Uint8Array, at: number): number | undefined {
    switch (this.#phase) {
      case "start": {
        // The first delimiter has no line before it.
        const first = this.#delimiter.subarray(2);
        if (bytes.length < first.length) return undefined;
        if (!startsWith(bytes, first, 0)) {
          return this.#refuse("The form does not begin with its boundary");
        }
        this.#begin(0);
        return first.length;
      }
      case "after_delimiter": {
        if (bytes.length < at + 2) return undefined;
        if (bytes[at] === DASH && bytes[at + 1] === DASH) {
          this.#phase = "over";
          this.#begun = undefined;
          return at + 2;
        }
        if (bytes[at] !== CR || bytes[at + 1] !== LF) {
          return this.#refuse("A boundary of the form is followed by something else");
        }
        this.#phase = "head";
        return at + 2;
      }
      case "head":
        return this.#head(bytes, at);
      case "body":
        return this.#body(bytes, at);
      case "over":
        return undefined;
    }
  }

  #head(bytes: Uint8Array, at: number): number | undefined {
    const end = endOfHead(bytes, at);
    if ((end ?? bytes.length) - at > HEAD_BYTES_MAX) {
      return this.#refuse("The head of a part of the form is too long");
    }
    if (end === undefined) return undefined;
    const head = readPartHead(bytes.subarray(at, end));
    if (head.kind === "invalid") return this.#refuse(head.detail);
    const begun = this.#begun;
    if (begun === undefined) throw new Error("No part has begun");
    begun.head = head;
    begun.bodyStart = this.#offset + end;
    begun.text = head.isFile ? undefined : [];
    this.#phase = "body";
    // An empty body's delimiter begins with the CRLF that ended the head.
    return end - 2;
  }

  #body(bytes: Uint8Array, at: number): number | undefined {
    const found = indexOf(bytes, this.#delimiter, at);
    if (found === undefined) return undefined;
    const from = Math.max(at, (this.#begun?.bodyStart ?? 0) - this.#offset);
    this.#collect(bytes.subarray(from, Math.max(from, found)));
    this.#finish(this.#offset + found);
    if (this.#parts.length >= PARTS_MAX) return this.#refuse("The form has too many parts");
    this.#begin(this.#offset + found + 2);
    return found + this.#delimiter.length;
  }

  /** What of `bytes` from `at` on must be seen again with what follows. */
  #keepFrom(bytes: Uint8Array, at: number): number {
    if (this.#phase === "over") return bytes.length;
    if (this.#phase !== "body") return at;
    const keep = Math.max(at, bytes.length - this.#delimiter.length + 1);
    const from = Math.max(at, (this.#begun?.bodyStart ?? 0) - this.#offset);
    if (keep > from) this.#collect(bytes.subarray(from, keep));
    return keep;
  }

  #begin(start: number): void {
    this.#begun = { start, head: undefined, bodyStart: 0, text: undefined, textBytes: 0 };
    this.#phase = "after_delimiter";
  }

  #collect(part: Uint8Array): void {
    const begun = this.#begun;
    if (begun?.text === undefined || part.length === 0) return;
    begun.textBytes += part.length;
    if (begun.textBytes > TEXT_BYTES_MAX) begun.text = undefined;
    else begun.text.push(part.slice());
  }

  #finish(bodyEnd: number): void {
    const begun = this.#begun;
    if (begun?.head === undefined) throw new Error("The part has no head");
    const { start, head, bodyStart, text } = begun;
    this.#parts.push({
      ...head,
      start,
      end: bodyEnd + 2,
      bodyStart,
      bodyEnd,
      text: text === undefined ? undefined : utf8.decode(text.reduce(joined, new Uint8Array(0))),
    });
  }

  #refuse(detail: string): undefined {
    this.#fault = invalid(detail);
    return undefined;
  }
}

const utf8 = new TextDecoder();

function invalid(detail: string): FormInvalid {
  return { kind: "invalid", detail };
}

/** Behind the empty line; the CRLF before `at` may be its first half, for a head without lines. */
function endOfHead(bytes: Uint8Array, at: number): number | undefined {
  if (bytes[at] === CR && bytes[at + 1] === LF) return at + 2;
  const found = indexOf(bytes, EMPTY_LINE, at);
  return found === undefined ? undefined : found + EMPTY_LINE.length;
}

const EMPTY_LINE = new Uint8Array([CR, LF, CR, LF]);

/** Every needle here begins with CR, which is rare enough to be looked for by itself. */
function indexOf(bytes: Uint8Array, needle: Uint8Array, from: number): number | undefined {
  for (let at = bytes.indexOf(CR, from); at >= 0; at = bytes.indexOf(CR, at + 1)) {
    if (bytes.length - at < needle.length) return undefined;
    if (startsWith(bytes, needle, at)) return at;
  }
  return undefined;
}

function startsWith(bytes: Uint8Array, needle: Uint8Array, at: number): boolean {
  for (let n = 0; n < needle.length; n++) {
    if (bytes[at + n] !== needle[n]) return false;
  }
  return true;
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(a.length + b.length);
  whole.set(a);
  whole.set(b, a.length);
  return whole;
}
