/**
 * A prompt as a chain of hashes, one for each block of its text: a block's hash covers everything
 * before it, so that two prompts have as many hashes in common as they have blocks in common.
 */
import type { Conversation } from "./conversation.ts";

/** A 64-bit hash of bytes, with a seed. */
export type Hash64 = (bytes: Uint8Array, seed: bigint) => bigint;

export interface PromptBlocks {
  /** One for each whole block, then one for what is left over. */
  readonly hashes: readonly number[];
  /** Tells this conversation from others, in all of its turns. */
  readonly head: number;
}

/** Some 64 tokens of plain text: four blocks of an engine. */
const BLOCK_BYTES = 256;
/** A prompt of a million tokens; what comes after it is not told apart. */
const BLOCKS_MAX = 16_384;

const encoder = new TextEncoder();

/** The long contents of data: URLs are left out of the text; these stand for them. */
const DIGEST = /;base64,#(\d+)(?=["\n])/g;

export interface BlockOptions {
  readonly hash: Hash64;
  /** Prompts of one tenant share nothing with those of another. */
  readonly salt: string;
  /** What was left out, by number. */
  readonly data: readonly string[];
}

export function blocksOf(
  { text, headEnd }: Conversation,
  { hash, salt, data }: BlockOptions,
): PromptBlocks {
  const root = hash(encoder.encode(salt), 0n);
  const digest = (piece: string) =>
    data.length === 0
      ? piece
      : piece.replace(DIGEST, (_, index: string) =>
        `;base64,${hash(encoder.encode(data[Number(index)] ?? ""), root)}`);
  const whole = digest(text);
  const bytes = encoder.encode(whole);
  const headText = headEnd === text.length ? whole : digest(text.slice(0, headEnd));
  // Of ASCII, each character is a byte.
  const ascii = bytes.length === whole.length;
  const head = bytes.subarray(0, ascii ? headText.length : encoder.encode(headText).length);
  const hashes: number[] = [];
  let last = root;
  const end = Math.min(bytes.length, BLOCKS_MAX * BLOCK_BYTES);
  for (let at = 0; at < end; at += BLOCK_BYTES) {
    last = hash(bytes.subarray(at, Math.min(at + BLOCK_BYTES, end)), last);
    hashes.push(numberOf(last));
  }
  return { hashes, head: numberOf(hash(head, root)) };
}

/** What a number holds exactly: 53 of the 64 bits. */
function numberOf(hash: bigint): number {
  return Number(hash >> 11n);
}
