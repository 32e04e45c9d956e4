/**
 * Finds the top-level members of a JSON object in its original bytes, so that a router can change
 * its own members and send the rest as it came: a round trip through JSON.parse rounds big integers
 * and rewrites numbers.
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
  /** Two members of one name in one object, plain or escaped: two readers could each take another. */
  | "duplicate_key"
  | "too_deep"
  /** More arrays, objects and members than any request needs. */
  | "too_many";

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

const DEPTH_MAX = 256;
/** Of a path in a message: deeper than that nobody looks. */
const PATH_CHARS_MAX = 200;

/** Reads `bytes` as one JSON object with nothing but white space around it. Never throws. */
export function scanObject(bytes: Uint8Array, options?: JsonScanOptions): JsonObject | JsonInvalid {
  const scanner = new Scanner(bytes, options?.depthMax ?? DEPTH_MAX);
  try {
    return scanner.object();
  } catch (error) {
    if (error instanceof Fault) return error.invalid;
    throw error;
  }
}

/** The member of that name. */
export function memberOf(object: JsonObject, key: string): JsonMember | undefined {
  return object.members.find((member) => member.key === key);
}

/** The parsed value of a member that `scanObject` found in these bytes. */
export function memberValue(bytes: Uint8Array, member: JsonMember): unknown {
  return JSON.parse(utf8.decode(bytes.subarray(member.valueStart, member.valueEnd)));
}

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

/** Carries a fault out of the scanner; never leaves this file. */
class Fault extends Error {
  readonly invalid: JsonInvalid;

  constructor(reason: JsonFault, offset: number, what: string) {
    super(what);
    this.invalid = { kind: "invalid", reason, offset, detail: `${what} at byte ${offset}` };
  }
}

/** An array or object that is open: its closing byte, the names it has, and where in it we are. */
interface Container {
  readonly closer: number;
  readonly keys?: Set<string>;
  at: string | number;
}

function twice(key: string, offset: number, object = ""): Fault {
  const where = object === "" ? "" : ` of ${object}`;
  return new Fault("duplicate_key", offset, `The member ${named(key)}${where} appears twice,`);
}

/** As in `messages[2].content`, of the containers around the innermost one. */
function pathOf(name: string, open: readonly Container[]): string {
  const path = open.map(({ at }) => typeof at === "number" ? `[${at}]` : `.${at}`).join("");
  const whole = `${name}${path}`;
  return whole.length > PATH_CHARS_MAX ? `${whole.slice(0, PATH_CHARS_MAX)}…` : whole;
}

function named(key: string): string {
  return JSON.stringify(key.slice(0, 64));
}

/** Walks the text once, front to back, without recursion: depth is data, not stack. */
class Scanner {
  readonly #bytes: Uint8Array;
  readonly #depthMax: number;
  #at = 0;

  constructor(bytes: Uint8Array, depthMax: number) {
    this.#bytes = bytes;
    this.#depthMax = depthMax;
  }

  object(): JsonObject {
    this.#space();
    const open = this.#at;
    if (this.#bytes[open] !== OPEN_BRACE) {
      this.#value("");
      this.#nothingMore();
      throw new Fault("not_object", open, "Want a JSON object");
    }
    this.#at++;
    const members: JsonMember[] = [];
    const keys = new Set<string>();
    this.#space();
    while (this.#bytes[this.#at] !== CLOSE_BRACE) {
      if (members.length > 0) this.#separator(CLOSE_BRACE);
      members.push(this.#member(keys));
      this.#space();
    }
    const close = this.#at++;
    this.#nothingMore();
    return { kind: "object", members, open, close };
  }

  #member(keys: Set<string>): JsonMember {
    const keyStart = this.#at;
    this.#string();
    const keyEnd = this.#at;
    const key = this.#decoded(keyStart, keyEnd);
    if (keys.has(key)) throw twice(key, keyStart);
    keys.add(key);
    this.#colon();
    const valueStart = this.#at;
    this.#value(key);
    return { key, keyStart, keyEnd, valueStart, valueEnd: this.#at };
  }

  /** The text of the string at `start`. Nearly all keys are short and plain: decoded by hand. */
  #decoded(start: number, end: number): string {
    let plain = "";
    for (let at = start + 1; at < end - 1; at++) {
      const byte = this.#bytes[at] ?? 0;
      if (byte === BACKSLASH || byte > 0x7f) {
        return String(JSON.parse(utf8.decode(this.#bytes.subarray(start, end))));
      }
      plain += String.fromCharCode(byte);
    }
    return plain;
  }

  /** Any value, that of the member `name`. */
  #value(name: string): void {
    const open: Container[] = [];
    for (;;) {
      const byte = this.#bytes[this.#at];
      if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        if (open.length + 1 >= this.#depthMax) {
          throw new Fault("too_deep", this.#at, `Nested more than ${this.#depthMax} levels deep`);
        }
        this.#at++;
        this.#space();
        const container = byte === OPEN_BRACE
          ? { closer: CLOSE_BRACE, keys: new Set<string>(), at: "" }
          : { closer: CLOSE_BRACKET, at: 0 };
        if (this.#bytes[this.#at] !== container.closer) {
          open.push(container);
          this.#key(name, open);
          continue;
        }
        this.#at++;
      } else this.#scalar(byte);
      if (!this.#next(name, open)) return;
    }
  }

  /** After a value: closes what ends here, and stands at the next value; false when all is closed. */
  #next(name: string, open: Container[]): boolean {
    for (;;) {
      const container = open.at(-1);
      if (container === undefined) return false;
      this.#space();
      if (this.#bytes[this.#at] === container.closer) {
        this.#at++;
        open.pop();
        continue;
      }
      this.#separator(container.closer);
      if (typeof container.at === "number") container.at++;
      else this.#key(name, open);
      return true;
    }
  }

  #separator(closer: number): void {
    if (this.#bytes[this.#at] !== COMMA) {
      throw this.#unexpected(`"," or "${String.fromCharCode(closer)}"`);
    }
    this.#at++;
    this.#space();
  }

  /** Where the innermost of `open` is an object: the name of its next member. */
  #key(name: string, open: readonly Container[]): void {
    const object = open.at(-1);
    if (object?.keys === undefined) return;
    const start = this.#at;
    this.#string();
    const key = this.#decoded(start, this.#at);
    if (object.keys.has(key)) throw twice(key, start, pathOf(name, open.slice(0, -1)));
    object.keys.add(key);
    object.at = key;
    this.#colon();
  }

  #colon(): void {
    this.#space();
    if (this.#bytes[this.#at] !== COLON) throw this.#unexpected(`":"`);
    this.#at++;
    this.#space();
  }

  #scalar(byte: number | undefined): void {
    if (byte === QUOTE) return this.#string();
    if (byte === 0x74) return this.#word("true");
    if (byte === 0x66) return this.#word("false");
    if (byte === 0x6e) return this.#word("null");
    this.#number();
  }

  #string(): void {
    const bytes = this.#bytes;
    const start = this.#at;
    if (bytes[start] !== QUOTE) throw this.#unexpected("a string");
    for (let at = start + 1; at < bytes.length; at++) {
      const byte = bytes[at];
      if (byte === QUOTE) {
        this.#at = at + 1;
        return;
      }
      if (byte === BACKSLASH) {
        this.#at = at + 1;
        this.#escape();
        at = this.#at - 1;
      } else if (byte !== undefined && byte < 0x20) {
        throw new Fault("syntax", at, "Unescaped control character in a string");
      }
    }
    throw new Fault(
      "syntax",
      bytes.length,
      `The string that begins at byte ${start} does not end,`,
    );
  }

  /** Stands after the backslash, and then after the escape. */
  #escape(): void {
    const byte = this.#bytes[this.#at];
    if (byte === 0x75) {
      for (let n = 1; n <= 4; n++) {
        if (!isHex(this.#bytes[this.#at + n])) {
          throw new Fault("syntax", this.#at, "Bad \\u escape");
        }
      }
      this.#at += 5;
    } else if (byte !== undefined && ESCAPES.includes(byte)) this.#at++;
    else throw new Fault("syntax", this.#at, "Bad escape");
  }

  #word(word: string): void {
    for (let n = 0; n < word.length; n++) {
      if (this.#bytes[this.#at + n] !== word.charCodeAt(n)) throw this.#unexpected("a value");
    }
    this.#at += word.length;
  }

  /** `-? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?`, of any length. */
  #number(): void {
    const start = this.#at;
    if (this.#bytes[this.#at] === 0x2d) this.#at++;
    if (this.#bytes[this.#at] === 0x30) this.#at++;
    else if (!this.#digits()) {
      this.#at = start;
      throw this.#unexpected("a value");
    }
    if (this.#bytes[this.#at] === 0x2e) {
      this.#at++;
      if (!this.#digits()) throw this.#unexpected("a digit");
    }
    if (((this.#bytes[this.#at] ?? 0) | 0x20) === 0x65) {
      this.#at++;
      const sign = this.#bytes[this.#at];
      if (sign === 0x2b || sign === 0x2d) this.#at++;
      if (!this.#digits()) throw this.#unexpected("a digit");
    }
  }

  #digits(): boolean {
    const start = this.#at;
    while (isDigit(this.#bytes[this.#at])) this.#at++;
    return this.#at > start;
  }

  #space(): void {
    for (;; this.#at++) {
      const byte = this.#bytes[this.#at];
      if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return;
    }
  }

  #nothingMore(): void {
    this.#space();
    if (this.#at < this.#bytes.length) throw this.#unexpected("the end");
  }

  #unexpected(wanted: string): Fault {
    const byte = this.#bytes[this.#at];
    if (byte === undefined) return new Fault("syntax", this.#at, `Want ${wanted}, got the end`);
    const shown = byte > 0x20 && byte < 0x7f
      ? JSON.stringify(String.fromCharCode(byte))
      : `byte 0x${byte.toString(16).padStart(2, "0")}`;
    return new Fault("syntax", this.#at, `Want ${wanted}, got ${shown}`);
  }
}

/** What may follow a backslash, "u" aside. */
const ESCAPES = [QUOTE, BACKSLASH, 0x2f, 0x62, 0x66, 0x6e, 0x72, 0x74];

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

function isHex(byte: number | undefined): boolean {
  if (byte === undefined) return false;
  const lower = byte | 0x20;
  return isDigit(byte) || (lower >= 0x61 && lower <= 0x66);
}
