import { equal, ok } from "node:assert/strict";
import fc from "fast-check";
import { PrefixIndex } from "./prefix_index.ts";

function chain(name: number, length: number): number[] {
  return Array.from({ length }, (_, index) => name * 1_000_000 + index);
}

Deno.test("PrefixIndex knows how much of a prompt's beginning was sent", () => {
  const index = new PrefixIndex();
  equal(index.match(chain(1, 10)), 0);
  index.add(chain(1, 10));
  equal(index.match(chain(1, 10)), 10);
  equal(index.match(chain(1, 25)), 10);
  equal(index.match(chain(1, 4)), 4);
  equal(index.match(chain(2, 4)), 0);
  equal(index.match([]), 0);
});

Deno.test("PrefixIndex is bounded by the engine's cache, and forgets ends before beginnings", () => {
  const index = new PrefixIndex();
  index.fit(300 * 64);
  index.add(chain(1, 200));
  index.add(chain(2, 200));
  equal(index.size, 300);
  equal(index.match(chain(2, 200)), 200);
  equal(index.match(chain(1, 200)), 100);
});

Deno.test("PrefixIndex keeps no more than its part of what all replicas may have", () => {
  const index = new PrefixIndex();
  index.add(chain(1, 2_000));
  index.bound(500);
  equal(index.size, 500);
  equal(index.match(chain(1, 2_000)), 500);
  index.fit(10_000 * 64);
  index.add(chain(2, 2_000));
  equal(index.size, 500);
});

Deno.test("PrefixIndex trusts itself as far as the engine finds what it expected", () => {
  const index = new PrefixIndex();
  index.add(chain(1, 2_000));
  for (let times = 0; times < 40; times++) index.learn(1_000, 0);
  ok(index.trust < 0.05);
  ok(index.size < 2_000);
  for (let times = 0; times < 40; times++) index.learn(1_000, 990);
  ok(index.trust > 0.9);
  index.learn(0, 50);
  ok(index.trust <= 1);
});

Deno.test("PrefixIndex finds a beginning as plainly as counting would", () => {
  const prompts = fc.array(
    fc.record({ name: fc.nat(5), length: fc.integer({ min: 1, max: 600 }) }),
    { minLength: 1, maxLength: 30 },
  );
  fc.assert(
    fc.property(prompts, (sent) => {
      const index = new PrefixIndex();
      index.fit(1_000 * 64);
      const order: number[] = [];
      for (const { name, length } of sent) {
        const hashes = chain(name, length);
        index.add(hashes);
        // Least recently used first, a prompt's last block before its first.
        for (const hash of hashes.toReversed()) {
          const at = order.indexOf(hash);
          if (at >= 0) order.splice(at, 1);
          order.push(hash);
        }
        order.splice(0, Math.max(0, order.length - 1_000));
      }
      const kept = new Set(order);
      for (const { name } of sent) {
        const hashes = chain(name, 600);
        const plain = hashes.findIndex((hash) => !kept.has(hash));
        equal(index.match(hashes), plain < 0 ? hashes.length : plain);
      }
    }),
    { numRuns: 30 },
  );
});
