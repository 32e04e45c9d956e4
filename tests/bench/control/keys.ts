/** What 100,000 keys cost control: to load, to hand to a router, to change, and to account for. */
import { cpuUsage } from "node:process";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { WatchResponseSchema } from "@heddle/proto/gen/router";
import { type UsageRecord, UsageRecordSchema } from "@heddle/proto/gen/tenancy";
import { revokeKey } from "../../../control/core/tenancy/change.ts";
import type { TenancyRecord } from "../../../control/core/tenancy/stored.ts";
import { openSqliteStore } from "../../../control/edge/store/sqlite.ts";
import type { Store } from "../../../control/edge/store/store.ts";
import { Tenants } from "../../../control/edge/tenancy/tenants.ts";
import { Ledger } from "../../../control/edge/usage/ledger.ts";
import { WatchHub } from "../../../control/edge/watch/hub.ts";
import { readTenancy, type StartingTenancy } from "../../../control/tenancy.ts";
import { say } from "../../../tools/say.ts";
import { freshWorld } from "./fleet.ts";

const KEYS = 100_000;
const PROJECTS = 1_000;
const BATCH = 1_000;
const BYTES_PER_MB = 1_000_000;
const NOW = Date.now();
const KEEP_MS = 864e5;
const USAGE = { timeZone: "Europe/Berlin", keepRecordsMs: KEEP_MS, keepHoursMs: KEEP_MS };

/** Prints processor time, and memory before anything is collected. */
export async function benchKeys(): Promise<void> {
  const directory = await Deno.makeTempDir();
  const store = await openSqliteStore(directory);
  try {
    await store.claim({ holder: "h", name: "n", address: "", leaseMs: 10_000 });
    say(`${KEYS} keys in ${PROJECTS} projects, SQLite`);
    const all = [...records()];
    await timed("writing them all", () => store.persist(all));
    const before = Deno.memoryUsage();
    const read = await timed("loading and checking", () => readTenancy(store, USAGE));
    await serving(store, read);
    const after = Deno.memoryUsage();
    line("heap, at most", (after.heapUsed - before.heapUsed) / BYTES_PER_MB, "MB");
    line("resident", (after.rss - before.rss) / BYTES_PER_MB, "MB");
  } finally {
    await store.close();
    await Deno.remove(directory, { recursive: true });
  }
}

async function serving(store: Store, read: StartingTenancy): Promise<void> {
  const { records, budgets, calendar, used } = read;
  const hub = new WatchHub(freshWorld({ models: [] }).published);
  const now = Date.now;
  const tenants = await timed("making them ready", () =>
    new Tenants({
      records,
      budgets,
      persist: (all) => store.persist(all),
      publish: (change) => hub.publishTenancy(change),
      now,
    }));
  hub.serve(tenants, tenants.everything);
  await snapshot(hub);
  await snapshot(hub);
  await timed(
    "revoking one",
    () =>
      tenants.change((all, at) =>
        revokeKey(all, { name: "key_7", reason: "" }, { by: "a", now: at })
      ),
  );
  const ledger = new Ledger({
    store,
    tenants,
    calendar,
    used,
    keep: { recordsMs: KEEP_MS, hoursMs: KEEP_MS },
    metrics: { recorded: () => {} },
    now,
  });
  const usage = Array.from({ length: BATCH }, (_, index) => recordOf(index));
  await timed(`${BATCH} records of usage`, () => ledger.record("r/1", usage));
  await timed("the same once more", () => ledger.record("r/1", usage));
}

function* records(): Generator<TenancyRecord> {
  const made = { routingProfile: "", band: "", createdAt: NOW, createdBy: "ann" };
  yield {
    kind: "scope",
    id: "org",
    value: { kind: "organisation", name: "o", parent: "", ...made },
  };
  for (let index = 0; index < PROJECTS; index++) {
    const value = { kind: "project", name: `p${index}`, parent: "org", ...made } as const;
    yield { kind: "scope", id: `proj_${index}`, value };
  }
  for (let index = 0; index < KEYS; index++) {
    const hex = index.toString(16).padStart(64, "0");
    const secrets = [{ sha256: hex, shown: `sk-heddle-${hex.slice(-6)}` }];
    const project = `proj_${index % PROJECTS}`;
    const value = { ...made, project, name: `key ${index}`, band: "", mayExplain: false, secrets };
    yield { kind: "key", id: `key_${index}`, value };
    // A tenth has limits of its own.
    if (index % 10 === 0) {
      yield { kind: "limits", id: `key_${index}`, value: { requestsPerMinute: 60 } };
    }
  }
}

function recordOf(index: number): UsageRecord {
  return create(UsageRecordSchema, {
    id: `record-${String(index).padStart(20, "0")}`,
    keyId: `key_${index * 97}`,
    projectId: `proj_${(index * 97) % PROJECTS}`,
    scopeIds: ["org", `proj_${(index * 97) % PROJECTS}`, `key_${index * 97}`],
    model: "demo",
    outcome: "ok",
    costMicro: 1_000n,
    usage: { promptTokens: 900n, completionTokens: 150n },
    attempts: [{ replicaId: "demo-1-1", model: "demo", outcome: "ok", served: true }],
  });
}

/** Everything that one router is sent; the longest piece is what holds up everything else. */
async function snapshot(hub: WatchHub): Promise<void> {
  const stop = new AbortController();
  let [pieces, longestMs, allMs] = [0, 0, 0];
  const stream = hub.watch("r/1", stop.signal)[Symbol.asyncIterator]();
  while (!stop.signal.aborted) {
    const start = cpuMs();
    const { value, done } = await stream.next();
    if (done === true) break;
    const bytes = toBinary(WatchResponseSchema, value);
    const tookMs = cpuMs() - start;
    [pieces, allMs, longestMs] = [pieces + 1, allMs + tookMs, Math.max(longestMs, tookMs)];
    if (fromBinary(WatchResponseSchema, bytes).snapshotEnd) stop.abort();
  }
  await stream.return?.(undefined);
  line(`a snapshot in ${pieces} pieces`, allMs, "ms");
  line("  the longest of them", longestMs, "ms");
}

async function timed<T>(name: string, work: () => T | Promise<T>): Promise<T> {
  const start = cpuMs();
  const value = await work();
  line(name, cpuMs() - start, "ms");
  return value;
}

function cpuMs(): number {
  const { user, system } = cpuUsage();
  return (user + system) / 1_000;
}

function line(name: string, value: number, unit: string): void {
  say(`  ${name.padEnd(30)}${value.toFixed(1).padStart(9)} ${unit}`);
}
