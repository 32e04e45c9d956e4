/** What every implementation of `UsageStore` must do, as tests to run against each of them. */
import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import fc from "fast-check";
import type { TenancyRecord } from "../../core/tenancy/stored.ts";
import {
  addSums,
  type Sums,
  type UsageAnswer,
  type UsageEntry,
  type UsageQuestion,
} from "../../core/usage/rollup.ts";
import { lead, type StorePlace, withStore } from "./contract.ts";
import type { Store } from "./store.ts";

const HOUR_MS = 3_600_000;
const NO_SUMS: Sums = {
  requests: 0,
  failures: 0,
  promptTokens: 0,
  completionTokens: 0,
  cachedTokens: 0,
  reasoningTokens: 0,
  estimated: 0,
  costMicro: 0,
  durationMs: 0,
  wastedTokens: 0,
};
const NASTY = `'; DROP TABLE tenancy; -- "\u2603\\ %_`;
const EVERYTHING: UsageQuestion = {
  by: ["hour", "key", "project", "model", "pool"],
  from: 0,
  until: 2 ** 50,
  limit: 1_000,
};

/** An entry of one request; ids that are the same make entries of one request. */
function entry(id: string, parts: Partial<UsageEntry> = {}, sums: Partial<Sums> = {}): UsageEntry {
  return {
    id,
    at: 1_000.5,
    record: new TextEncoder().encode(id),
    hour: 0,
    key: "k1",
    project: "p1",
    model: "m1",
    pool: "ib-a/h100-80g",
    scopes: ["o1", "p1", "k1"],
    periods: ["d1", "m1"],
    ...parts,
    sums: { ...NO_SUMS, requests: 1, ...sums },
  };
}

const someEntry = fc.record({
  id: fc.nat(30),
  hour: fc.nat(3),
  key: fc.nat(2),
  model: fc.nat(2),
  pool: fc.nat(2),
  tokens: fc.nat({ max: 1_000_000 }),
  cost: fc.nat({ max: 2 ** 31 }),
}).map(({ id, hour, key, model, pool, tokens, cost }) =>
  entry(`id-${id}`, {
    hour: hour * HOUR_MS,
    key: `k${key}`,
    project: `p${key % 2}`,
    model: `m${model}${NASTY}`,
    pool: pool === 0 ? "" : `pool-${pool}${NASTY}`,
    scopes: [`p${key % 2}`, `k${key}`],
  }, { promptTokens: tokens, costMicro: cost, durationMs: tokens })
);

/** Registers the tests under `name`; `place` makes a fresh, empty place. */
export function testUsageContract(
  name: string,
  place: () => Promise<StorePlace>,
  register: (name: string, fn: () => Promise<void>) => void = Deno.test,
): void {
  const test = (what: string, work: (place: StorePlace) => Promise<void>) =>
    register(`${name} ${what}`, async () => {
      await using fresh = await place();
      await work(fresh);
    });
  testTenancy(test);
  testSums(test);
  testPools(test);
  testRestart(test);
  testForgetting(test);
}

type Test = (what: string, work: (place: StorePlace) => Promise<void>) => void;

async function withLead(place: StorePlace, work: (store: Store) => Promise<void>): Promise<void> {
  await withStore(place, async (store) => {
    await lead(store);
    await work(store);
    await store.release();
  });
}

function testTenancy(test: Test): void {
  test("keeps scopes, keys, limits and prices under their ids, whatever these say", (fresh) =>
    withLead(fresh, async (store) => {
      const limits = { requestsPerMinute: 5, models: [NASTY] };
      const records: TenancyRecord[] = [
        { kind: "limits", id: NASTY, value: limits },
        { kind: "limits", id: "gone", value: limits },
        { kind: "price", id: NASTY, value: { basis: "request", micro: 7 } },
      ];
      await store.persist(records);
      await store.persist([
        { kind: "limits", id: "gone" },
        { kind: "price", id: NASTY, value: { basis: "request", micro: 8 } },
      ]);
      const { rows, used } = await store.loadTenancy();
      const found = rows.map(({ kind, id, value }) => [kind, id, JSON.parse(value)]).sort();
      deepEqual(found, [
        ["limits", NASTY, limits],
        ["price", NASTY, { basis: "request", micro: 8 }],
      ]);
      equal(used.size, 0);
    }));

  test("keeps what a change was before and after, with who made it", (fresh) =>
    withLead(fresh, async (store) => {
      const audit = {
        kind: "audit",
        at: 5,
        by: "ann",
        action: "limits",
        subject: NASTY,
        reason: "",
        before: "{}",
        after: '{"a":1}',
      } as const;
      await store.persist([audit]);
      deepEqual(await store.audit(1), [audit]);
    }));

  test("keeps when keys were used, and never an earlier time", (fresh) =>
    withLead(fresh, async (store) => {
      await store.recordUsage([], new Map([["k1", 10.4], ["k2", 20]]));
      await store.recordUsage([], new Map([["k1", 30], ["k2", 5]]));
      deepEqual([...(await store.loadTenancy()).used].sort(), [["k1", 30], ["k2", 20]]);
    }));
}

function testSums(test: Test): void {
  test("has sums that are those of the records, each counted once", (fresh) =>
    withStore(fresh, async (store) => {
      await lead(store);
      const once = new Map<string, UsageEntry>();
      let round = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(fc.array(someEntry, { maxLength: 20 })), async (batches) => {
          round++;
          for (const batch of batches) {
            // Rounds share a store, so each has ids of its own.
            const entries = batch.map((each) => ({ ...each, id: `${round} ${each.id}` }));
            const known = new Set(once.keys());
            const fresh = await store.recordUsage(entries, new Map());
            const expected = entries.filter(({ id }) => !known.has(id)).map(({ id }) => id);
            deepEqual(fresh, new Set(expected));
            // Of several with one id it is the first that counts.
            for (const each of firstOfEach(entries)) {
              if (!known.has(each.id)) once.set(each.id, each);
            }
          }
          await agrees(store, [...once.values()]);
        }),
        { numRuns: 15 },
      );
      await store.release();
    }));

  test("tells apart what was asked for, and only that", (fresh) =>
    withLead(fresh, async (store) => {
      await store.recordUsage([
        entry("1", { hour: HOUR_MS }, { promptTokens: 5 }),
        entry("2", { hour: HOUR_MS, model: "m2" }, { promptTokens: 7 }),
        entry("3", { hour: 2 * HOUR_MS, key: "k2", project: "p2" }, { promptTokens: 11 }),
        entry("4", { hour: 3 * HOUR_MS }, { promptTokens: 13 }),
      ], new Map());
      const ask = async (parts: Partial<UsageQuestion>) =>
        (await store.usage({ ...EVERYTHING, by: [], ...parts })).map((row) => [
          row.hour / HOUR_MS,
          row.key,
          row.project,
          row.model,
          row.sums.promptTokens,
        ]);
      deepEqual(await ask({}), [[0, "", "", "", 36]]);
      deepEqual(await ask({ by: ["key"] }), [[0, "k1", "", "", 25], [0, "k2", "", "", 11]]);
      deepEqual(await ask({ by: ["model"], from: HOUR_MS, until: 3 * HOUR_MS }), [
        [0, "", "", "m1", 16],
        [0, "", "", "m2", 7],
      ]);
      deepEqual(await ask({ projects: ["p2", NASTY] }), [[0, "", "", "", 11]]);
      deepEqual(await ask({ projects: [], by: ["key"] }), []);
      deepEqual(await ask({ key: "k1", model: "m2" }), [[0, "", "", "", 7]]);
      deepEqual(await ask({ by: ["key"], model: NASTY }), []);
      deepEqual(await ask({ by: ["hour"], limit: 2 }), [[1, "", "", "", 12], [2, "", "", "", 11]]);
    }));
}

function testPools(test: Test): void {
  test("tells pools apart, of one key and model too", (fresh) =>
    withLead(fresh, async (store) => {
      await store.recordUsage([
        entry("1", {}, { promptTokens: 5 }),
        entry("2", { pool: "ib-b/a100-80g" }, { promptTokens: 7 }),
        entry("3", { pool: "" }, { promptTokens: 11 }),
      ], new Map());
      await store.recordUsage([entry("4", {}, { promptTokens: 13 })], new Map());
      const ask = async (by: UsageQuestion["by"], key = "k1") =>
        (await store.usage({ ...EVERYTHING, by, key })).map((row) => [
          row.model,
          row.pool,
          row.sums.promptTokens,
        ]);
      deepEqual(await ask(["pool"]), [
        ["", "", 11],
        ["", "ib-a/h100-80g", 18],
        ["", "ib-b/a100-80g", 7],
      ]);
      deepEqual(await ask(["model"]), [["m1", "", 36]]);
      deepEqual(await ask(["pool"], "k2"), []);
    }));
}

function testRestart(test: Test): void {
  test("counts a record once across a restart, and takes none from who does not lead", async (fresh) => {
    const sent = [entry("1", {}, { costMicro: 40 }), entry("2", {}, { costMicro: 2 })];
    await withLead(fresh, async (store) => {
      equal((await store.recordUsage(sent, new Map())).size, 2);
    });
    await withStore(fresh, async (store) => {
      await rejects(store.recordUsage(sent, new Map()), /does not lead/);
      await lead(store);
      equal((await store.recordUsage([...sent, entry("3")], new Map())).size, 1);
      deepEqual(
        (await store.spent(["d1"])).map(({ scope, micro }) => [scope, micro]).sort(),
        [["k1", 42], ["o1", 42], ["p1", 42]],
      );
      deepEqual(await store.spent(["d2"]), []);
    });
  });
}

function testForgetting(test: Test): void {
  test("forgets what is too old, and nothing else", (fresh) =>
    withLead(fresh, async (store) => {
      const entries = [1, 2, 3].map((hour) =>
        entry(`${hour}`, {
          at: hour * HOUR_MS,
          hour: hour * HOUR_MS,
          periods: [`d2026-11-0${hour}`, `m2026-0${hour}`],
        }, { costMicro: hour })
      );
      await store.recordUsage(entries, new Map());
      const more = await store.prune({
        recordsFrom: 3 * HOUR_MS,
        hoursFrom: 2 * HOUR_MS,
        day: "d2026-11-02",
        month: "m2026-03",
      });
      equal(more, false);
      const hours = await store.usage({ ...EVERYTHING, by: ["hour"] });
      deepEqual(hours.map(({ hour }) => hour / HOUR_MS), [2, 3]);
      const pools = await store.usage({ ...EVERYTHING, by: ["hour", "pool"] });
      deepEqual(pools.map(({ hour }) => hour / HOUR_MS), [2, 3]);
      const all = [1, 2, 3].flatMap((at) => [`d2026-11-0${at}`, `m2026-0${at}`]);
      const kept = new Set((await store.spent(all)).map(({ period }) => period));
      deepEqual([...kept].sort(), ["d2026-11-02", "d2026-11-03", "m2026-03"]);
      // The record is gone, so its id counts again; that of the third is still known.
      deepEqual(await store.recordUsage(entries, new Map()), new Set(["1", "2"]));
    }));
}

function firstOfEach(entries: readonly UsageEntry[]): UsageEntry[] {
  return [...new Map(entries.toReversed().map((each) => [each.id, each])).values()];
}

async function agrees(store: Store, entries: readonly UsageEntry[]): Promise<void> {
  const place = (row: Pick<UsageAnswer, "hour" | "key" | "project" | "model" | "pool">) =>
    JSON.stringify([row.hour, row.key, row.project, row.model, row.pool]);
  const wanted = new Map<string, Sums>();
  const spent = new Map<string, number>();
  for (const each of entries) {
    wanted.set(place(each), addSums(wanted.get(place(each)) ?? NO_SUMS, each.sums));
    for (const scope of each.scopes) {
      for (const period of each.periods) {
        const at = `${scope} ${period}`;
        spent.set(at, (spent.get(at) ?? 0) + each.sums.costMicro);
      }
    }
  }
  const found = await store.usage(EVERYTHING);
  deepEqual(new Map(found.map((row) => [place(row), row.sums])), wanted);
  const [total] = await store.usage({ ...EVERYTHING, by: [] });
  deepEqual(total?.sums, entries.map(({ sums }) => sums).reduce(addSums, NO_SUMS));
  for (const { scope, period, micro } of await store.spent(["d1", "m1"])) {
    equal(micro, spent.get(`${scope} ${period}`), scope);
    ok(spent.delete(`${scope} ${period}`));
  }
  equal([...spent.values()].every((micro) => micro === 0), true);
}
