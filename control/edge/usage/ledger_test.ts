import { deepEqual, equal, rejects } from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { type UsageRecord, UsageRecordSchema } from "@heddle/proto/gen/tenancy";
import { HeddleError } from "@heddle/proto/error";
import { startLogging } from "@heddle/common/log";
import type { TenancyRecord } from "../../core/tenancy/stored.ts";
import { Budgets } from "../../core/usage/budgets.ts";
import { Calendar } from "../../core/usage/periods.ts";
import { rollUp, type Spent, type UsageEntry } from "../../core/usage/rollup.ts";
import type { Retention } from "../store/store.ts";
import { Tenants } from "../tenancy/tenants.ts";
import type { TenancyChange } from "../watch/tenancy_feed.ts";
import { Ledger } from "./ledger.ts";

const NOON = Date.parse("2026-11-29T12:00:00Z");
const DAY_MS = 86_400_000;
const MADE = { routingProfile: "", band: "", createdAt: 0, createdBy: "ann" };
const RECORDS: readonly TenancyRecord[] = [
  { kind: "scope", id: "org", value: { kind: "organisation", name: "o", parent: "", ...MADE } },
  { kind: "limits", id: "org", value: { budgetMicro: 100, budgetPeriod: "day" } },
];

/** A store in memory that can lose its answer, or what it was told. */
class FakeStore {
  readonly entries = new Map<string, UsageEntry>();
  readonly used = new Map<string, number>();
  readonly pruned: Retention[] = [];
  more = false;
  fails: "before" | "after" | undefined;

  recordUsage(entries: readonly UsageEntry[], used: ReadonlyMap<string, number>) {
    const failure = () => Promise.reject(new HeddleError("system", "the store does not answer"));
    if (this.fails === "before") return failure();
    const fresh = entries.filter(({ id }) => !this.entries.has(id));
    for (const entry of fresh) this.entries.set(entry.id, entry);
    for (const [key, at] of used) this.used.set(key, at);
    return this.fails === "after" ? failure() : Promise.resolve(new Set(fresh.map(({ id }) => id)));
  }

  spent(periods: readonly string[]): Promise<readonly Spent[]> {
    const { spent } = rollUp([...this.entries.values()]);
    return Promise.resolve(spent.filter(({ period }) => periods.includes(period)));
  }

  prune(retention: Retention) {
    this.pruned.push(retention);
    return Promise.resolve(this.more);
  }
}

function stage() {
  const store = new FakeStore();
  const told: TenancyChange[] = [];
  const calendar = new Calendar("UTC");
  const clock = { now: NOON };
  const now = () => clock.now;
  const tenants = new Tenants({
    records: RECORDS,
    budgets: new Budgets(calendar),
    persist: () => Promise.resolve(),
    publish: (change) => void told.push(change),
    now,
  });
  const counts = new Map<string, number>();
  const ledger = new Ledger({
    store,
    tenants,
    calendar,
    used: new Map(),
    keep: { recordsMs: 35 * DAY_MS, hoursMs: 400 * DAY_MS },
    metrics: {
      recorded: (result, count) => void counts.set(result, (counts.get(result) ?? 0) + count),
    },
    now,
  });
  return { store, told, clock, tenants, ledger, counts };
}

function record(number: number, parts: Partial<UsageRecord> = {}): UsageRecord {
  const made = create(UsageRecordSchema, {
    id: `record-${String(number).padStart(12, "0")}`,
    keyId: "key_1",
    scopeIds: ["org", "key_1"],
    model: "demo",
    outcome: "ok",
    costMicro: 30n,
  });
  return Object.assign(made, parts);
}

Deno.test("Ledger counts a record once, whatever becomes of the store's answer", async () => {
  const { store, ledger, tenants, counts } = stage();
  const spent = () => tenants.standing("org")?.spentMicro;
  equal(await ledger.record("r/1", [record(1)]), 0);
  store.fails = "before";
  await rejects(ledger.record("r/1", [record(2)]), /does not answer/);
  store.fails = "after";
  await rejects(ledger.record("r/1", [record(2), record(3)]), /does not answer/);
  equal(spent(), 30, "what is not known to be written is not counted yet");
  store.fails = undefined;
  equal(await ledger.record("r/1", [record(2), record(3), record(4)]), 2);
  equal(spent(), 120, "but is found once the store answers again");
  deepEqual(counts, new Map([["new", 2], ["duplicate", 2]]));
});

Deno.test("Ledger tells routers at once when a budget is used up, and only once", async () => {
  const { ledger, tenants, told } = stage();
  await ledger.record("r/1", [record(1), record(2), record(3)]);
  equal(told.length, 0, "90 of 100");
  await ledger.record("r/1", [record(4)]);
  deepEqual(told.map(({ scopes }) => [...scopes]), [["org"]]);
  await ledger.record("r/1", [record(5)]);
  equal(told.length, 1);
  equal(tenants.scope("org")?.budget?.exhausted, true);
});

Deno.test("Ledger's budgets refill at midnight, and routers are told", async () => {
  const { ledger, tenants, told, clock } = stage();
  await ledger.record("r/1", [record(1), record(2), record(3), record(4)]);
  clock.now += DAY_MS / 2;
  tenants.tick();
  equal(tenants.scope("org")?.budget?.exhausted, false);
  deepEqual(told.map(({ scopes }) => [...scopes]), [["org"], ["org"]]);
  // What was used before midnight, and comes late, is dated before midnight.
  await ledger.record("r/1", [record(5, { ageMs: 60_000n })]);
  equal(tenants.standing("org")?.spentMicro, 0);
});

Deno.test("Ledger drops what could count twice, and refuses more than a thousand", async () => {
  const { ledger, store, counts } = stage();
  const log: string[] = [];
  await startLogging({ format: "text", level: "info", write: (line) => void log.push(line) });
  for (
    const id of ["", "short", "x".repeat(65), "a'; DROP TABLE usage_record; --", "a\0".repeat(9)]
  ) {
    equal(await ledger.record("r/1", [record(1, { id })]), 0);
  }
  equal(store.entries.size, 0);
  equal(counts.get("refused"), 5);
  equal(log.some((line) => line.includes("DROP TABLE")), false);
  const many = Array.from({ length: 1_001 }, (_, index) => record(index));
  await rejects(ledger.record("r/1", many), /1000 at most/);
});

Deno.test("Ledger keeps what clients wrote from the columns, and numbers from going too far", async () => {
  const { ledger, store } = stage();
  await ledger.record("r/1", [
    record(1, {
      modelAsked: "a\0b\u001b[2J".repeat(9_000),
      model: "m\0\n",
      costMicro: 2n ** 63n,
      ageMs: 2n ** 63n,
      durationMs: 7n,
      outcome: "client_closed",
      attempts: [],
    }),
  ]);
  const [entry] = [...store.entries.values()];
  equal(entry?.model, "m??");
  deepEqual([entry?.sums.costMicro, entry?.sums.failures, entry?.sums.durationMs], [2 ** 40, 1, 7]);
  equal(entry?.at, NOON - 30 * DAY_MS);
  equal((entry?.record.length ?? 0) < 1_000, true);
});

Deno.test("Ledger writes when a key was used, but not every time", async () => {
  const { ledger, store, clock } = stage();
  await ledger.record("r/1", [record(1)]);
  equal(store.used.get("key_1"), NOON);
  clock.now += 60_000;
  await ledger.record("r/1", [record(2)]);
  equal(store.used.get("key_1"), NOON);
  clock.now += 5 * 60_000;
  await ledger.record("r/1", [record(3)]);
  equal(ledger.lastUsed("key_1"), clock.now);
  equal(store.used.get("key_1"), clock.now);
});

Deno.test("Ledger forgets a bounded part every minute, and goes on at once while there is more", async () => {
  const { ledger, store, clock } = stage();
  await ledger.tick();
  equal(store.pruned.length, 0);
  clock.now += 60_000;
  store.more = true;
  await ledger.tick();
  await ledger.tick();
  store.more = false;
  await ledger.tick();
  await ledger.tick();
  equal(store.pruned.length, 3);
  deepEqual(store.pruned[0], {
    recordsFrom: clock.now - 35 * DAY_MS,
    hoursFrom: clock.now - 400 * DAY_MS,
    day: "d2026-11-29",
    month: "m2026-11",
  });
});
