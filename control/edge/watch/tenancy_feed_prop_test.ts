import { deepEqual, equal } from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { WatchResponseSchema } from "@heddle/proto/gen/router";
import {
  type Key,
  KeySchema,
  type ModelPrice,
  ModelPriceSchema,
  type Scope,
  ScopeSchema,
} from "@heddle/proto/gen/tenancy";
import { CHUNK_ITEMS } from "./delta.ts";
import { withEncoded } from "./encoded.ts";
import { FakeRouter } from "./publication_fake.ts";
import { type EncodedPart, TenancyFeed, type TenancySource } from "./tenancy_feed.ts";

const IDS = ["a", "b", "c", "d"];

const step = fc.array(
  fc.record({
    id: fc.constantFrom(...IDS),
    what: fc.constantFrom("keys", "scopes", "prices"),
    gone: fc.boolean(),
  }),
  { maxLength: 6 },
);

function receive(router: FakeRouter, parts: Iterable<EncodedPart>, snapshot = false): void {
  const all = [...parts];
  for (const part of all) {
    router.receive(withEncoded(create(WatchResponseSchema, { snapshot }), part));
  }
  if (snapshot) {
    router.receive(create(WatchResponseSchema, { snapshot: true, snapshotEnd: true }));
  }
}

/** What there is, in memory. */
class Source implements TenancySource {
  readonly keys = new Map<string, Key>();
  readonly scopes = new Map<string, Scope>();
  readonly prices = new Map<string, ModelPrice>();
  asked = 0;
  key = (id: string) => this.keys.get(id);
  price = (model: string) => this.prices.get(model);
  scope = (id: string) => {
    this.asked++;
    return this.scopes.get(id);
  };

  put(what: "keys" | "scopes" | "prices", id: string, version: number | undefined): void {
    if (version === undefined) return void this[what].delete(id);
    const name = `${version}`;
    if (what === "keys") this.keys.set(id, create(KeySchema, { id, name }));
    if (what === "scopes") this.scopes.set(id, create(ScopeSchema, { id, name }));
    if (what !== "prices") return;
    const price = { basis: { case: "requestMicro", value: BigInt(version) } } as const;
    this.prices.set(id, create(ModelPriceSchema, { model: id, price }));
  }
}

Deno.test("TenancyFeed gives who came at first, who came late, and who came back the same", () => {
  fc.assert(fc.property(fc.array(step, { maxLength: 10 }), fc.nat(9), (steps, late) => {
    const source = new Source();
    const feed = new TenancyFeed(source);
    const [first, second] = [new FakeRouter(), new FakeRouter()];
    let version = 0;
    for (const [index, changes] of steps.entries()) {
      if (index === late) receive(second, feed.snapshot(() => 0), true);
      const change = {
        keys: new Set<string>(),
        scopes: new Set<string>(),
        prices: new Set<string>(),
      };
      for (const { id, what, gone } of changes) {
        source.put(what, id, gone ? undefined : ++version);
        change[what].add(id);
      }
      feed.touch(change);
      const parts = feed.delta(change);
      receive(first, parts);
      if (index >= late) receive(second, parts);
    }
    const back = new FakeRouter();
    receive(back, feed.snapshot(() => 0), true);
    for (const router of late < steps.length ? [first, second, back] : [first, back]) {
      deepEqual(sorted(router.keys), sorted(source.keys));
      deepEqual(sorted(router.scopes), sorted(source.scopes));
      deepEqual(sorted(router.prices), sorted(source.prices));
    }
  }));
});

Deno.test("TenancyFeed sends a thousand in a piece, and makes anew only the piece that changed", () => {
  const source = new Source();
  const feed = new TenancyFeed(source);
  const keys = Array.from({ length: 2 * CHUNK_ITEMS + 1 }, (_, index) => `k${index}`);
  for (const id of keys) source.put("keys", id, 1);
  const all = { keys, scopes: [], prices: [] };
  feed.touch(all);
  equal(feed.delta(all).length, 3);
  const before = [...feed.snapshot(() => 0)];
  equal(before.length, 3);
  source.put("keys", "k0", 2);
  feed.touch({ keys: ["k0"], scopes: [], prices: [] });
  const after = [...feed.snapshot(() => 0)];
  deepEqual(after.map((part, index) => part === before[index]), [false, true, true]);
});

Deno.test("TenancyFeed says anew how budgets stand when what it has encoded is old", () => {
  const source = new Source();
  const feed = new TenancyFeed(source);
  source.put("scopes", "s", 1);
  feed.touch({ keys: [], scopes: ["s"], prices: [] });
  for (const now of [0, 9_000, 10_001, 11_000]) equal([...feed.snapshot(() => now)].length, 1);
  equal(source.asked, 2);
});

function sorted(map: ReadonlyMap<string, unknown>) {
  return [...map].sort(([a], [b]) => a < b ? -1 : 1);
}
