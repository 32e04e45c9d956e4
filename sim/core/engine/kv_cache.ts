/**
 * The KV cache: fixed blocks, shared by reference count, found again by content.
 *
 * A block is owned by the sequences whose tables list it. When the last one lets go, the block becomes free but
 * keeps its content, and the next sequence with the same prefix takes it back; only when a new block is needed is
 * the least recently freed one overwritten. A sequence frees its last block first, so that the head of a prompt,
 * which most others share, survives longest. Only full blocks are ever shared.
 */
import { blockHash, rootHash } from "./block_hash.ts";
import { FreeList } from "./free_list.ts";

export interface KvCacheOptions {
  readonly blockCount: number;
  readonly blockTokens: number;
  readonly prefixCaching: boolean;
}

/** One sequence's view of the cache. Owned by its sequence; changed only by `KvCache`. */
export class BlockTable {
  /** Ids of the blocks that hold the sequence's tokens, in order. */
  readonly blocks: number[] = [];
  /** Hashes of the sequence's full blocks, as far as they were needed. */
  readonly hashes: number[] = [];
  /** How many of `blocks` are findable by content or were found so. */
  published = 0;
  readonly root: number;

  constructor(salt: string) {
    this.root = rootHash(salt);
  }
}

interface Content {
  readonly hash: number;
  readonly parent: number;
  readonly tokens: readonly number[];
}

export class KvCache {
  readonly options: KvCacheOptions;
  readonly #free: FreeList;
  readonly #references: Int32Array;
  readonly #content: (Content | undefined)[];
  readonly #byHash = new Map<number, number>();

  constructor(options: KvCacheOptions) {
    this.options = options;
    this.#free = new FreeList(options.blockCount);
    this.#references = new Int32Array(options.blockCount);
    this.#content = new Array<Content | undefined>(options.blockCount).fill(undefined);
  }

  get freeBlocks(): number {
    return this.#free.length;
  }

  /** Share of blocks in use, 0 to 1. */
  get usage(): number {
    const { blockCount } = this.options;
    return blockCount === 0 ? 0 : (blockCount - this.#free.length) / blockCount;
  }

  /** How many tables list `block`. */
  references(block: number): number {
    return this.#references[block] ?? 0;
  }

  /**
   * The blocks that already hold the head of `tokens`, in order. At least one token is left to compute, because
   * an engine needs the last one's output.
   */
  match(table: BlockTable, tokens: readonly number[]): readonly number[] {
    if (!this.options.prefixCaching) return [];
    const matched: number[] = [];
    const fullBlocks = Math.floor((tokens.length - 1) / this.options.blockTokens);
    for (let index = 0; index < fullBlocks; index += 1) {
      const block = this.#find(table, tokens, index);
      if (block === undefined) break;
      matched.push(block);
    }
    return matched;
  }

  /**
   * Makes `table` hold `tokenCount` tokens, its first blocks being `matched` (only for an empty table). Returns
   * false, and changes nothing, when there are not enough free blocks.
   */
  reserve(table: BlockTable, tokenCount: number, matched: readonly number[] = []): boolean {
    const wanted = Math.ceil(tokenCount / this.options.blockTokens);
    const held = table.blocks.length + matched.length;
    const fresh = Math.max(0, wanted - held);
    const revived = matched.filter((block) => this.#references[block] === 0).length;
    if (fresh + revived > this.#free.length) return false;
    for (const block of matched) this.#adopt(table, block);
    for (let count = 0; count < fresh; count += 1) this.#take(table);
    return true;
  }

  /** Makes the full blocks among the first `tokenCount` tokens findable by content. */
  publish(table: BlockTable, tokens: readonly number[], tokenCount: number): void {
    if (!this.options.prefixCaching) return;
    const fullBlocks = Math.floor(tokenCount / this.options.blockTokens);
    for (; table.published < fullBlocks; table.published += 1) {
      const block = table.blocks[table.published];
      if (block === undefined) return;
      const hash = this.#hash(table, tokens, table.published);
      if (this.#byHash.has(hash)) continue;
      const start = table.published * this.options.blockTokens;
      const parent = table.published === 0 ? table.root : table.hashes[table.published - 1];
      this.#content[block] = {
        hash,
        parent: parent ?? table.root,
        tokens: tokens.slice(start, start + this.options.blockTokens),
      };
      this.#byHash.set(hash, block);
    }
  }

  /** Lets go of all of the table's blocks, last first. */
  release(table: BlockTable): void {
    for (let index = table.blocks.length - 1; index >= 0; index -= 1) {
      const block = table.blocks[index] ?? -1;
      const references = (this.#references[block] ?? 0) - 1;
      if (references < 0) {
        throw new Error(`block ${block} is released more often than it was taken`);
      }
      this.#references[block] = references;
      if (references === 0) this.#free.append(block);
    }
    table.blocks.length = 0;
    table.published = 0;
  }

  #adopt(table: BlockTable, block: number): void {
    if (this.#references[block] === 0) this.#free.remove(block);
    this.#references[block] = (this.#references[block] ?? 0) + 1;
    table.blocks.push(block);
    table.published += 1;
  }

  #take(table: BlockTable): void {
    const block = this.#free.shift();
    if (block === undefined) throw new Error("a reserved block is missing");
    const old = this.#content[block];
    if (old !== undefined) {
      this.#byHash.delete(old.hash);
      this.#content[block] = undefined;
    }
    this.#references[block] = 1;
    table.blocks.push(block);
  }

  #find(table: BlockTable, tokens: readonly number[], index: number): number | undefined {
    const hash = this.#hash(table, tokens, index);
    const block = this.#byHash.get(hash);
    if (block === undefined) return undefined;
    const content = this.#content[block];
    const parent = index === 0 ? table.root : table.hashes[index - 1];
    if (content === undefined || content.parent !== parent) return undefined;
    const start = index * this.options.blockTokens;
    return content.tokens.every((token, at) => token === tokens[start + at]) ? block : undefined;
  }

  #hash(table: BlockTable, tokens: readonly number[], index: number): number {
    const { blockTokens } = this.options;
    for (let next = table.hashes.length; next <= index; next += 1) {
      const parent = next === 0 ? table.root : table.hashes[next - 1] ?? table.root;
      const start = next * blockTokens;
      table.hashes.push(blockHash(parent, tokens, { start, end: start + blockTokens }));
    }
    return table.hashes[index] ?? table.root;
  }
}
