import { deepEqual, ok } from "node:assert/strict";
import fc from "fast-check";
import { casesOf } from "../testing/random.ts";
import type { ModelRecord } from "../world.ts";
import { CLEAN_RECORD } from "./draft.ts";
import { failureRecords, type Failures, rememberedRecord } from "./failures.ts";

const BLOCKED: ModelRecord["blocked"] = [
  { profile: "p", message: "no", fingerprint: "f", told: [{ what: "vllm 1" }] },
];
const record: fc.Arbitrary<ModelRecord> = fc.record({
  failedStarts: fc.nat(2),
  blocked: fc.constantFrom([], BLOCKED),
  lastFailure: fc.constantFrom("one", "two"),
  backoffUntil: fc.nat(3),
  noRoom: fc.string(),
}, { requiredKeys: ["failedStarts", "blocked"] });
const models = fc.dictionary(fc.constantFrom("a", "b", "c"), record)
  .map((all) => new Map(Object.entries(all)));

Deno.test("a store that is given failureRecords() has what a new control needs, and nothing else", () => {
  fc.assert(
    fc.property(fc.array(models, { maxLength: 6 }), (worlds) => {
      const store = new Map<string, Failures>();
      let before: ReadonlyMap<string, ModelRecord> = new Map();
      for (const after of worlds) {
        for (const { model, failures } of failureRecords(before, after)) {
          if (failures === undefined) ok(store.delete(model), "nothing is removed in vain");
          else store.set(model, failures);
        }
        before = after;
        const kept = [...after].filter(([, { failedStarts, blocked }]) =>
          failedStarts > 0 || blocked.length > 0
        );
        deepEqual([...store.keys()].sort(), kept.map(([model]) => model).sort());
        for (const [model, { failedStarts, blocked, lastFailure }] of kept) {
          deepEqual(store.get(model), {
            failedStarts,
            blocked,
            ...(lastFailure === undefined ? {} : { lastFailure }),
          });
        }
        deepEqual(failureRecords(store, after), [], "what is stored is stored");
      }
    }),
    casesOf(1_000),
  );
});

Deno.test("failureRecords() does not speak of what changes with time and demand", () => {
  const record = { ...CLEAN_RECORD, failedStarts: 1, blocked: BLOCKED };
  const later = { ...record, backoffUntil: 5, noRoom: "none", demandAt: 7 };
  deepEqual(failureRecords(new Map([["m", record]]), new Map([["m", later]])), []);
});

Deno.test("rememberedRecord() waits anew after failed starts, and not without", () => {
  const bounds = { firstMs: 10_000, maxMs: 600_000 };
  const blocked = { failedStarts: 0, blocked: BLOCKED };
  deepEqual(rememberedRecord("m", blocked, { bounds, now: 1_000 }), blocked);
  const { backoffUntil = 0 } = rememberedRecord("m", { ...blocked, failedStarts: 9 }, {
    bounds,
    now: 1_000,
  });
  ok(backoffUntil > 1_000 + bounds.maxMs / 2 - 1 && backoffUntil <= 1_000 + bounds.maxMs);
});
