import { deepEqual, equal } from "node:assert/strict";
import fc from "fast-check";
import { type Members, withEntry, withMember, withoutEntry, withoutMember } from "./layered_map.ts";

const key = fc.integer({ min: 0, max: 60 });
const step = fc.oneof(
  fc.record({ kind: fc.constant("set" as const), key, value: fc.option(fc.nat(9)) }),
  fc.record({ kind: fc.constant("delete" as const), key }),
);

type Value = number | null;

function sorted(map: ReadonlyMap<number, Value>): readonly [number, Value][] {
  return [...map].sort(([a], [b]) => a - b);
}

Deno.test("a layered map is what a map is after the same changes, and leaves the ones before alone", () => {
  fc.assert(
    fc.property(fc.uniqueArray(key), fc.array(step, { maxLength: 120 }), (keys, steps) => {
      const plain = new Map<number, Value>(keys.map((each) => [each, each]));
      let map: ReadonlyMap<number, Value> = new Map(plain);
      const before: (readonly [ReadonlyMap<number, Value>, readonly [number, Value][]])[] = [];
      for (const each of steps) {
        before.push([map, sorted(map)]);
        if (each.kind === "set") {
          plain.set(each.key, each.value);
          map = withEntry(map, each.key, each.value);
        } else {
          plain.delete(each.key);
          map = withoutEntry(map, each.key);
        }
        equal(map.size, plain.size);
        equal(map.get(each.key), plain.get(each.key));
        equal(map.has(each.key), plain.has(each.key));
      }
      deepEqual(sorted(map), sorted(plain));
      deepEqual([...map.keys()].sort(), [...plain.keys()].sort());
      deepEqual([...map.values()].sort(), [...plain.values()].sort());
      const visited = new Map<number, Value>();
      map.forEach((value, at) => visited.set(at, value));
      deepEqual(visited, new Map(sorted(map).length === 0 ? [] : map));
      for (const [old, then] of before) deepEqual(sorted(old), then);
    }),
    { numRuns: 1_000 },
  );
});

Deno.test("a layered set is what a set is after the same changes", () => {
  fc.assert(
    fc.property(fc.uniqueArray(key), fc.array(step, { maxLength: 120 }), (keys, steps) => {
      const plain = new Set(keys);
      let set: Members<number> = new Set(keys);
      for (const each of steps) {
        if (each.kind === "set") {
          plain.add(each.key);
          set = withMember(set, each.key);
        } else {
          plain.delete(each.key);
          set = withoutMember(set, each.key);
        }
        equal(set.size, plain.size);
        equal(set.has(each.key), plain.has(each.key));
      }
      deepEqual([...set].sort(), [...plain].sort());
    }),
    { numRuns: 1_000 },
  );
});
