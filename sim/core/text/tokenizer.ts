/**
 * The simulated engine's tokenizer.
 *
 * A real vocabulary would be megabytes and say nothing about scheduling. What matters is that the count is
 * plausible (about four bytes a token), the same everywhere (usage, /tokenize, the KV cache), and reversible
 * without a table. So: text is split as GPT-2 splits it; a piece that is one of our own words is one token; any
 * other piece becomes runs of whole characters of at most four bytes, and the id is those bytes.
 */
import { OPENING_WORDS, WORDS } from "./words.ts";

const PIECE_BYTES_MAX = 4;
const PIECE = /<\|[a-z_]{1,16}\|>| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+/gu;

/** Ids below 256 are single bytes; then come special tokens, then words, then longer byte runs by length. */
const SPECIAL_BASE = 256;
const WORD_BASE = 512;
const RUN_BASE: readonly number[] = [0, 0, 8192, 8192 + 2 ** 16, 8192 + 2 ** 16 + 2 ** 24];

/** One more than the largest token id. */
const VOCABULARY_SIZE = 8192 + 2 ** 16 + 2 ** 24 + 2 ** 32;

/** The end of an answer, the marks of a turn, and one patch of an image. */
const SPECIALS: readonly string[] = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|image|>"];

/** The token that ends an answer; it has no text. */
export const END_OF_TEXT = SPECIAL_BASE;

function capitalised(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

const WORD_TEXTS: readonly string[] = [
  ...new Set([
    ...WORDS.map((word) => ` ${word}`),
    ...WORDS.map((word) => ` ${capitalised(word)}`),
    ...OPENING_WORDS.map((word) => ` ${word}`),
    "This",
  ]),
];
const KNOWN_IDS: ReadonlyMap<string, number> = new Map([
  ...WORD_TEXTS.map((text, index): [string, number] => [text, WORD_BASE + index]),
  ...SPECIALS.map((text, index): [string, number] => [text, SPECIAL_BASE + index]),
]);

const utf8 = new TextEncoder();
const lossy = new TextDecoder("utf-8", { ignoreBOM: true });

/** The id of a word as it stands inside a sentence, with its leading space. */
export function wordId(word: string, options: { capital: boolean }): number {
  const id = KNOWN_IDS.get(` ${options.capital ? capitalised(word) : word}`);
  if (id === undefined) throw new RangeError(`"${word}" is not a word of the vocabulary`);
  return id;
}

// The piece is turned into bytes at once: a prompt may be megabytes, and nobody else is served while
// it is split.
function pushRuns(piece: string, ids: number[]): void {
  const bytes = utf8.encode(piece);
  for (let start = 0; start < bytes.length;) {
    let end = Math.min(start + PIECE_BYTES_MAX, bytes.length);
    while (end < bytes.length && isContinuation(bytes[end])) end -= 1;
    let value = 0;
    for (let at = start; at < end; at += 1) value = value * 256 + (bytes[at] ?? 0);
    ids.push((RUN_BASE[end - start] ?? 0) + value);
    start = end;
  }
}

/** True for a byte of UTF-8 that no character begins with. */
function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

/** The token ids of `text`. Pure and total: any string has an encoding, and "" has none. */
export function encode(text: string): number[] {
  const ids: number[] = [];
  for (const [piece] of text.matchAll(PIECE)) {
    const known = KNOWN_IDS.get(piece);
    if (known === undefined) pushRuns(piece, ids);
    else ids.push(known);
  }
  return ids;
}

function runLength(id: number): number {
  if (id < SPECIAL_BASE) return 1;
  for (let length = PIECE_BYTES_MAX; length > 1; length -= 1) {
    if (id >= (RUN_BASE[length] ?? Infinity)) return length;
  }
  return 0;
}

function bytesOf(id: number): number[] {
  const length = runLength(id);
  if (length === 0) {
    const text = WORD_TEXTS[id - WORD_BASE] ?? SPECIALS[id - SPECIAL_BASE] ?? "";
    return id === END_OF_TEXT ? [] : [...utf8.encode(text)];
  }
  const bytes: number[] = [];
  let value = id - (RUN_BASE[length] ?? 0);
  for (let index = 0; index < length; index += 1) {
    bytes.unshift(value % 256);
    value = Math.floor(value / 256);
  }
  return bytes;
}

/** Whether `id` is a token id of this vocabulary. */
export function inVocabulary(id: number): boolean {
  return Number.isInteger(id) && id >= 0 && id < VOCABULARY_SIZE;
}

/** The text of `ids`; bytes that are no UTF-8 become U+FFFD, as in vLLM. `decode(encode(x))` is `x`. */
export function decode(ids: readonly number[]): string {
  return lossy.decode(Uint8Array.from(ids.flatMap(bytesOf)));
}

/** The text of one token. Fast for our own words, which is what answers consist of. */
export function textOf(id: number): string {
  return id === END_OF_TEXT ? "" : WORD_TEXTS[id - WORD_BASE] ?? decode([id]);
}
