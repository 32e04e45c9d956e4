import { deepEqual, equal } from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { WatchResponseSchema } from "@heddle/proto/gen/router";
import {
  type Key,
  KeySchema,
  ModelPriceSchema,
  type Scope,
  ScopeSchema,
} from "@heddle/proto/gen/tenancy";
import { CHUNK_ITEMS } from "./delta.ts";
import { withEncoded } from "./encoded.ts";
import { FakeRouter } from "./publication_fake.ts";
import { type EncodedPart, type TenancyChange, TenancyFeed } from "./tenancy_feed.ts";

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

Deno.test("TenancyFeed gives who came at first, who came late, and who came back the same", () => {
  fc.assert(fc.property(fc.array(step, { maxLength: 10 }), fc.nat(9), (steps, late) => {
    const feed = new TenancyFeed();
    const [first, second] = [new FakeRouter(), new FakeRouter()];
    let version = 0;
    for (const [index, changes] of steps.entries()) {
      if (index === late) receive(second, feed.snapshot(() => 0), true);
      const change = {
        keys: new Map<string, Key | undefined>(),
        scopes: new Map<string, Scope | undefined>(),
        prices: new Map(),
      };
      for (const { id, what, gone } of changes) {
        const name = `${++version}`;
        if (what === "keys") {
          change.keys.set(id, gone ? undefined : create(KeySchema, { id, name }));
        }
        if (what === "scopes") {
          change.scopes.set(id, gone ? undefined : create(ScopeSchema, { id, name }));
        }
        if (what === "prices") {
          const price = { basis: { case: "requestMicro", value: BigInt(version) } } as const;
          const made = create(ModelPriceSchema, { model: id, price });
          change.prices.set(id, gone ? undefined : made);
        }
      }
      const parts = feed.apply(change);
      receive(first, parts);
      if (index >= late) receive(second, parts);
    }
    const back = new FakeRouter();
    receive(back, feed.snapshot(() => 0), true);
    const routers = late < steps.length ? [second, back] : [back];
    for (const router of routers) {
      deepEqual(sorted(router.keys), sorted(first.keys));
      deepEqual(sorted(router.scopes), sorted(first.scopes));
      deepEqual(sorted(router.prices), sorted(first.prices));
    }
  }));
});

Deno.test("TenancyFeed sends a thousand in a piece, and encodes only the piece that changed", () => {
  const feed = new TenancyFeed();
  const keys = Array.from({ length: 2 * CHUNK_ITEMS + 1 }, (_, index) => `k${index}`);
  const nothing: TenancyChange = { keys: new Map(), scopes: new Map(), prices: new Map() };
  const all = new Map(keys.map((id) => [id, create(KeySchema, { id })]));
  equal(feed.apply({ ...nothing, keys: all }).length, 3);
  const before = [...feed.snapshot(() => 0)];
  equal(before.length, 3);
  feed.apply({ ...nothing, keys: new Map([["k0", create(KeySchema, { id: "k0", name: "n" })]]) });
  const after = [...feed.snapshot(() => 0)];
  deepEqual(after.map((part, index) => part === before[index]), [false, true, true]);
});

Deno.test("TenancyFeed says anew how budgets stand when what it has encoded is old", () => {
  const feed = new TenancyFeed();
  let asked = 0;
  feed.refresh = (scope) => {
    asked++;
    return scope;
  };
  const scopes = new Map([["s", create(ScopeSchema, { id: "s" })]]);
  feed.apply({ keys: new Map(), scopes, prices: new Map() });
  for (const now of [0, 9_000, 10_001, 11_000]) equal([...feed.snapshot(() => now)].length, 1);
  equal(asked, 2);
});

function sorted(map: ReadonlyMap<string, unknown>) {
  return [...map].sort(([a], [b]) => a < b ? -1 : 1);
}
