/**
 * Which prompts one replica's cache has, as far as can be told from outside: what was sent there, the
 * least recently used forgotten first, as engines do. That is a guess, since nobody tells how large
 * the cache is and who else uses it; so the engine's own count of cached tokens, which comes with
 * each answer, says how much the guess is worth.
 */

/** Blocks until the engine has said how much it holds: 256,000 tokens. */
const BLOCKS_FIRST = 4_096;
const BLOCKS_MIN = 256;
/** Bounds the memory that one replica costs here, some 3 MiB. */
const BLOCKS_MAX = 32_768;
/** Tokens in a block, as in `blocks.ts`. */
const TOKENS_PER_BLOCK = 64;
/** How much one answer says of the guess. */
const TRUST_STEP = 0.1;
/** Below this part of what was expected, the engine had forgotten it: so does the index. */
const FORGOTTEN_SHARE = 0.5;

export class PrefixIndex {
  /** Least recently used first. */
  readonly #blocks = new Map<number, true>();
  #held = BLOCKS_FIRST;
  #bound = BLOCKS_MAX;
  #trust = 1;

  /** Blocks that are kept now. */
  get size(): number {
    return this.#blocks.size;
  }

  /** How much of what was expected to be cached really was, 0 to 1. */
  get trust(): number {
    return this.#trust;
  }

  /** How many blocks of the prompt's beginning are there. */
  match(hashes: readonly number[]): number {
    const first = hashes[0];
    if (first === undefined || !this.#blocks.has(first)) return 0;
    // A block is never forgotten after those that follow it, so its place can be searched for.
    let low = 1;
    let high = hashes.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      const hash = hashes[middle - 1];
      if (hash !== undefined && this.#blocks.has(hash)) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** The prompt was sent there. */
  add(hashes: readonly number[]): void {
    // The last block first: the beginning, which most prompts share, stays longest.
    for (let index = Math.min(hashes.length, this.#max) - 1; index >= 0; index--) {
      const hash = hashes[index];
      if (hash === undefined) continue;
      this.#blocks.delete(hash);
      this.#blocks.set(hash, true);
    }
    this.#trim();
  }

  /** The engine says how many tokens its cache holds. */
  fit(kvTokens: number): void {
    const blocks = Math.floor(kvTokens / TOKENS_PER_BLOCK);
    this.#held = Math.max(blocks, BLOCKS_MIN);
    this.#trim();
  }

  /** What may be kept for this replica, of all that is kept. */
  bound(blocks: number): void {
    this.#bound = Math.min(Math.max(blocks, BLOCKS_MIN), BLOCKS_MAX);
    this.#trim();
  }

  get #max(): number {
    return Math.min(this.#held, this.#bound);
  }

  /** Of a prompt of which `expected` tokens were thought to be cached, `found` were. */
  learn(expected: number, found: number): void {
    if (expected <= 0) return;
    const share = Math.min(1, found / expected);
    this.#trust += TRUST_STEP * (share - this.#trust);
    if (share >= FORGOTTEN_SHARE) return;
    // It holds less than was thought: the oldest are gone there, and go here.
    for (const hash of this.#blocks.keys()) {
      if (this.#blocks.size <= BLOCKS_MIN) break;
      this.#blocks.delete(hash);
      if (this.#blocks.size % 32 === 0) break;
    }
  }

  /** The engine started anew: it has nothing. */
  clear(): void {
    this.#blocks.clear();
  }

  #trim(): void {
    const max = this.#max;
    for (const hash of this.#blocks.keys()) {
      if (this.#blocks.size <= max) return;
      this.#blocks.delete(hash);
    }
  }
}
