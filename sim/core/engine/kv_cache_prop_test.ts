import assert from "node:assert/strict";
import fc from "fast-check";
import { BlockTable, KvCache } from "./kv_cache.ts";

const BLOCK_TOKENS = 4;
const BLOCK_COUNT = 12;

/** Few distinct tokens, so that prompts share prefixes often, also by accident. */
const prompts = fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 1, maxLength: 30 });

type Step =
  | { readonly do: "admit"; readonly tokens: number[]; readonly salt: string }
  | { readonly do: "grow"; readonly which: number; readonly token: number }
  | { readonly do: "release"; readonly which: number };

const steps: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constant("admit" as const),
    tokens: prompts,
    salt: fc.constantFrom("", "tenant"),
  }),
  fc.record({
    do: fc.constant("grow" as const),
    which: fc.nat(),
    token: fc.integer({ min: 0, max: 2 }),
  }),
  fc.record({ do: fc.constant("release" as const), which: fc.nat() }),
);

/** A cache beside a record of what was truly written into each block. */
class Case {
  readonly cache = new KvCache({
    blockCount: BLOCK_COUNT,
    blockTokens: BLOCK_TOKENS,
    prefixCaching: true,
  });
  readonly live: { table: BlockTable; tokens: number[]; salt: string }[] = [];
  readonly written = new Map<number, string>();

  take(step: Step): void {
    switch (step.do) {
      case "admit":
        return this.#admit(step.tokens, step.salt);
      case "grow":
        return this.#grow(step.which, step.token);
      case "release": {
        const one = this.live.splice(step.which % Math.max(1, this.live.length), 1)[0];
        if (one !== undefined) this.cache.release(one.table);
      }
    }
  }

  #admit(tokens: number[], salt: string): void {
    const table = new BlockTable(salt);
    const matched = this.cache.match(table, tokens);
    for (const [index, block] of matched.entries()) {
      assert.equal(this.written.get(block), prefix(salt, tokens, index), "a hit has our content");
    }
    assert.ok(matched.length * BLOCK_TOKENS < tokens.length, "one token is left to compute");
    const free = this.cache.freeBlocks;
    if (!this.cache.reserve(table, tokens.length, matched)) {
      assert.equal(this.cache.freeBlocks, free, "a refusal changes nothing");
      assert.equal(table.blocks.length, 0);
      return;
    }
    this.live.push({ table, tokens: [...tokens], salt });
    this.#write(table, tokens, salt, matched.length);
  }

  #grow(which: number, token: number): void {
    const one = this.live[which % Math.max(1, this.live.length)];
    if (one === undefined || !this.cache.reserve(one.table, one.tokens.length + 1)) return;
    one.tokens.push(token);
    this.#write(one.table, one.tokens, one.salt, one.table.published);
  }

  #write(table: BlockTable, tokens: number[], salt: string, from: number): void {
    for (let index = from; index < table.blocks.length; index += 1) {
      const block = table.blocks[index] ?? -1;
      assert.equal(this.cache.references(block), 1, "nobody else has a block that is written to");
      this.written.set(block, prefix(salt, tokens, index));
    }
    this.cache.publish(table, tokens, tokens.length);
  }

  check(): void {
    const owners = new Map<number, number>();
    for (const { table, tokens } of this.live) {
      assert.equal(table.blocks.length, Math.ceil(tokens.length / BLOCK_TOKENS));
      assert.equal(new Set(table.blocks).size, table.blocks.length, "a block once per table");
      for (const block of table.blocks) owners.set(block, (owners.get(block) ?? 0) + 1);
    }
    for (let block = 0; block < BLOCK_COUNT; block += 1) {
      assert.equal(this.cache.references(block), owners.get(block) ?? 0);
    }
    assert.equal(this.cache.freeBlocks, BLOCK_COUNT - owners.size, "each block is owned or free");
  }
}

function prefix(salt: string, tokens: readonly number[], block: number): string {
  return `${salt}|${tokens.slice(0, (block + 1) * BLOCK_TOKENS).join(",")}`;
}

Deno.test("KvCache leaks no block, gives none out twice, and hits only equal content", () => {
  fc.assert(
    fc.property(fc.array(steps, { maxLength: 80 }), (all) => {
      const state = new Case();
      for (const step of all) {
        state.take(step);
        state.check();
      }
      while (state.live.length > 0) state.take({ do: "release", which: 0 });
      state.check();
      assert.equal(state.cache.usage, 0);
    }),
    { numRuns: 500 },
  );
});

function filled(cache: KvCache, tokens: readonly number[]): BlockTable {
  const table = new BlockTable("");
  const matched = cache.match(table, tokens);
  assert.ok(cache.reserve(table, tokens.length, matched));
  cache.publish(table, tokens, tokens.length);
  return table;
}

Deno.test("KvCache evicts what was freed first, and of one prompt its tail first", () => {
  const cache = new KvCache({ blockCount: 4, blockTokens: 2, prefixCaching: true });
  const old = [1, 1, 1, 1];
  const recent = [2, 2, 2, 2];
  for (const tokens of [old, recent]) cache.release(filled(cache, tokens));
  cache.release(filled(cache, [3, 3]));
  const hits = (tokens: readonly number[]) =>
    cache.match(new BlockTable(""), [...tokens, 0]).length;
  assert.equal(hits(old), 1, "its last block was overwritten");
  assert.equal(hits(recent), 2);
});

Deno.test("KvCache finds nothing without prefix caching", () => {
  const cache = new KvCache({ blockCount: 8, blockTokens: 2, prefixCaching: false });
  cache.release(filled(cache, [1, 1, 1, 1]));
  assert.deepEqual(cache.match(new BlockTable(""), [1, 1, 1, 1, 1]), []);
});

Deno.test("KvCache finds content again that was evicted and then computed anew", () => {
  const cache = new KvCache({ blockCount: 2, blockTokens: 2, prefixCaching: true });
  cache.release(filled(cache, [1, 1]));
  cache.release(filled(cache, [2, 2, 3, 3]));
  assert.equal(cache.match(new BlockTable(""), [1, 1, 0]).length, 0, "it was evicted");
  cache.release(filled(cache, [1, 1]));
  assert.equal(cache.match(new BlockTable(""), [1, 1, 0]).length, 1);
});
