import { deepEqual, equal, ok } from "node:assert/strict";
import fc from "fast-check";
import { chainOf } from "./chain.ts";
import { allowedModels, effectiveLimits } from "./effective.ts";
import { emptyTenancy, type StoredKey, type StoredLimits, type Tenancy } from "./stored.ts";

const CHAIN = ["org", "team", "proj", "key_1"] as const;
const MODELS = ["a", "b", "c"];

const number = fc.option(fc.nat(9), { nil: undefined });
const limits = fc.record({
  requestsPerMinute: number,
  tokensPerMinute: number,
  concurrentRequests: number,
  models: fc.option(fc.subarray(MODELS), { nil: undefined }),
});
const budget = fc.record({
  budgetMicro: fc.nat(9),
  budgetPeriod: fc.constantFrom("day" as const, "month" as const),
});
const all = fc.record({ limits, budget: fc.option(budget, { nil: undefined }) })
  .map(({ limits, budget }): StoredLimits => ({ ...limits, ...budget }));

function tenancyOf(each: readonly StoredLimits[], keyModels?: readonly string[]): Tenancy {
  const tenancy = emptyTenancy();
  const made = { routingProfile: "", band: "", createdAt: 0, createdBy: "ann" };
  tenancy.scopes.set("org", { kind: "organisation", name: "o", parent: "", ...made });
  tenancy.scopes.set("team", { kind: "team", name: "t", parent: "org", ...made });
  tenancy.scopes.set("proj", { kind: "project", name: "p", parent: "team", ...made });
  const key: StoredKey = {
    ...made,
    project: "proj",
    name: "k",
    band: "",
    mayExplain: false,
    secrets: [],
    ...(keyModels === undefined ? {} : { models: [...keyModels] }),
  };
  tenancy.keys.set("key_1", key);
  for (const [index, id] of CHAIN.entries()) tenancy.limits.set(id, each[index] ?? {});
  return tenancy;
}

Deno.test("effectiveLimits() is what nobody on the chain goes below, from who says so", () => {
  fc.assert(fc.property(fc.array(all, { minLength: 4, maxLength: 4 }), fc.nat(9), (each, spent) => {
    const found = effectiveLimits(tenancyOf(each), "key_1", () => spent);
    for (
      const [name, member] of [
        ["requests_per_minute", "requestsPerMinute"],
        ["tokens_per_minute", "tokensPerMinute"],
        ["concurrent_requests", "concurrentRequests"],
      ] as const
    ) {
      const values = each.map((one) => one[member]).filter((value) => value !== undefined);
      const limit = found.find((one) => one.name === name);
      if (values.length === 0) {
        equal(limit, undefined);
        continue;
      }
      ok(limit !== undefined && "value" in limit);
      equal(limit.value, Math.min(...values));
      const from = CHAIN.findIndex((id) => id === limit.from.id);
      equal(each[from]?.[member], limit.value);
    }
    for (const period of ["day", "month"] as const) {
      const budgets = each.filter((one) => one.budgetPeriod === period)
        .map(({ budgetMicro = 0 }) => budgetMicro);
      const limit = found.find((one) => one.name === "budget" && one.period === period);
      if (budgets.length === 0) equal(limit, undefined);
      else ok(limit?.name === "budget" && limit.value === Math.min(...budgets));
    }
  }));
});

Deno.test("allowedModels() has only what everybody on the chain allows, and none is not all", () => {
  const lists = fc.array(fc.option(fc.subarray(MODELS), { nil: undefined }), {
    minLength: 5,
    maxLength: 5,
  });
  fc.assert(fc.property(lists, (said) => {
    const [own, ...scopes] = said;
    const each = scopes.map((models): StoredLimits => ({ models }));
    const tenancy = tenancyOf(each, own);
    const allowed = allowedModels(tenancy, chainOf(tenancy, "key_1"))?.models;
    const spoken = said.filter((list) => list !== undefined);
    if (spoken.length === 0) return equal(allowed, undefined);
    const expected = MODELS.filter((name) => spoken.every((list) => list.includes(name)));
    deepEqual([...(allowed ?? [])].sort(), expected);
  }));
});
