/** What every implementation of `Store` must do, as tests to run against each of them. */
import { create } from "@bufbuild/protobuf";
import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import type { Failures } from "../../core/deciding/failures.ts";
import type { Claim } from "../../core/lease/claim.ts";
import type { Audit, StoreRecord } from "../../core/store_record.ts";
import { NO_DECISIONS } from "../../core/world.ts";
import { MeasurementSchema } from "@heddle/proto/gen/capacity";
import { catalogHash } from "./catalog_hash.ts";
import { MEASUREMENTS_MAX } from "./measurement_rows.ts";
import type { Store } from "./store.ts";

/** A place for one store: opened again, it holds what was written before. */
export interface StorePlace extends AsyncDisposable {
  open(): Promise<Store>;
}

export const LEASE_MS = 60_000;
const reason = "fan is loud; 'quoted' \u2603";
const cordon = { kind: "cordon", by: "ann", reason, at: 1_800_000_000_123 } as const;
const pause = { by: "ann", reason: "", at: 2.5 };
const restart = { kind: "restart", by: "bob", reason, at: 4 } as const;
const strike = { by: "ann", reason, at: 4, issuedBefore: 1_800_000_000_000 };
const scale = { by: "bob", reason, at: 3, replicas: 4 };
const failures: Failures = {
  failedStarts: 2,
  lastFailure: reason,
  blocked: [
    { profile: "p", message: reason, fingerprint: "f1", told: [{ what: "vllm 1" }] },
    {
      profile: "q",
      node: "n1",
      reason: "disk_full",
      message: "",
      fingerprint: "f2",
      told: [{ node: "n1", what: "boot '1'" }],
    },
  ],
};
const audit: Audit = {
  kind: "audit",
  at: 5,
  by: "ann",
  action: "cordon",
  subject: "n1",
  reason,
};

const EVERYTHING: readonly StoreRecord[] = [
  { kind: "term", term: 3 },
  { kind: "known_node", node: "n1", known: true },
  { kind: "known_node", node: "n2", known: true },
  { kind: "catalog", text: "models: []\n", revision: 9 },
  { kind: "catalog_file", control: "a", hash: "123" },
  { kind: "node_decision", node: "n1", decision: cordon },
  { kind: "paused", model: "m1", decision: pause },
  { kind: "scale", model: "m1", decision: scale },
  { kind: "labels", node: "n1", labels: { rack: "r1", "": "" } },
  { kind: "replica_decision", replica: "m1-3-4", decision: restart },
  { kind: "strike", struck: "agent/n1", decision: strike },
  { kind: "failures", model: "m1", failures },
  audit,
];

/** A claim of a process that has not been before. */
export function newClaim(name = "a"): Claim {
  return { holder: crypto.randomUUID(), name, address: `${name}.lab:9090`, leaseMs: LEASE_MS };
}

/** Claims, and gives the term. */
export async function lead(store: Store, claim = newClaim()): Promise<number> {
  const answer = await store.claim(claim);
  if (answer.kind !== "granted") throw new Error(`${answer.by.name} leads`);
  return answer.term;
}

type Test = (what: string, work: (place: StorePlace) => Promise<void>) => void;

/** Registers the tests under `name`; `place` makes a fresh, empty place. */
export function testStoreContract(
  name: string,
  place: () => Promise<StorePlace>,
  register: (name: string, fn: () => Promise<void>) => void = Deno.test,
): void {
  const test: Test = (what, work) =>
    register(`${name} ${what}`, async () => {
      await using fresh = await place();
      await work(fresh);
    });
  testRecords(test);
  testChanges(test);
  testTerms(test);
  testMeasurements(test);
}

function testRecords(test: Test): void {
  test("is empty when it is new", (fresh) =>
    withStore(fresh, async (store) => {
      await lead(store);
      deepEqual(await store.load(), {
        knownNodes: new Set(),
        decisions: NO_DECISIONS,
        failures: new Map(),
        catalog: undefined,
        appliedCatalogs: new Set(),
        catalogFile: undefined,
      });
      deepEqual(await store.audit(10), []);
    }));

  test("holds everything across a restart", async (fresh) => {
    await withLead(fresh, (store) => store.persist(EVERYTHING));
    await withLead(fresh, async (store) => {
      deepEqual(await store.load(), {
        knownNodes: new Set(["n1", "n2"]),
        decisions: {
          nodes: new Map([["n1", cordon]]),
          paused: new Map([["m1", pause]]),
          scales: new Map([["m1", scale]]),
          labels: new Map([["n1", { rack: "r1", "": "" }]]),
          replicas: new Map([["m1-3-4", restart]]),
          struck: new Map([["agent/n1", strike]]),
        },
        failures: new Map([["m1", failures]]),
        catalog: { text: "models: []\n", revision: 9 },
        appliedCatalogs: new Set([catalogHash("models: []\n")]),
        catalogFile: { control: "a", hash: "123" },
      });
      deepEqual(await store.audit(10), [audit]);
    });
  });

  test("tells also a control that does not lead what was struck", async (fresh) => {
    await withLead(fresh, async (store) => {
      deepEqual(await store.struck(), new Map());
      await store.persist(EVERYTHING);
      deepEqual(await store.struck(), new Map([["agent/n1", strike]]));
    });
    await withStore(fresh, async (store) => {
      deepEqual(await store.struck(), new Map([["agent/n1", strike]]));
    });
  });
}

function testChanges(test: Test): void {
  test("is idempotent, and keeps the newest of each kind and subject", (fresh) =>
    withLead(fresh, async (store) => {
      await store.persist(EVERYTHING);
      const before = await store.load();
      await store.persist(EVERYTHING);
      deepEqual(await store.load(), before);
      const drain = { ...cordon, kind: "drain", by: "bob" } as const;
      await store.persist([
        { kind: "node_decision", node: "n1", decision: cordon },
        { kind: "node_decision", node: "n1", decision: drain },
        { kind: "node_decision", node: "n2", decision: cordon },
        { kind: "catalog", text: "", revision: 10 },
        { kind: "catalog_file", control: "b", hash: "456" },
        { kind: "failures", model: "m1", failures: { failedStarts: 3, blocked: [] } },
        { kind: "failures", model: "m2", failures },
      ]);
      const { decisions, catalog, appliedCatalogs, catalogFile, ...rest } = await store.load();
      deepEqual(
        decisions.nodes,
        new Map<string, typeof cordon | typeof drain>([["n1", drain], ["n2", cordon]]),
      );
      deepEqual(catalog, { text: "", revision: 10 });
      deepEqual(appliedCatalogs, new Set([catalogHash("models: []\n"), catalogHash("")]));
      deepEqual(catalogFile, { control: "b", hash: "456" });
      deepEqual(rest.failures.get("m1"), { failedStarts: 3, blocked: [] });
      deepEqual(rest.failures.get("m2"), failures);
    }));

  test("removes what is taken back, also what was never there", (fresh) =>
    withLead(fresh, async (store) => {
      await store.persist(EVERYTHING);
      for (const subject of ["1", "7"]) {
        await store.persist([
          { kind: "node_decision", node: `n${subject}` },
          { kind: "paused", model: `m${subject}` },
          { kind: "scale", model: `m${subject}` },
          { kind: "labels", node: `n${subject}` },
          { kind: "replica_decision", replica: `m${subject}-3-4` },
          { kind: "strike", struck: `agent/n${subject}` },
          { kind: "failures", model: `m${subject}` },
          { kind: "known_node", node: `n${subject}`, known: false },
        ]);
      }
      const { decisions, knownNodes, failures } = await store.load();
      deepEqual(decisions, NO_DECISIONS);
      deepEqual(failures, new Map());
      deepEqual(knownNodes, new Set(["n2"]));
    }));

  test("gives the newest audit records first, at most as many as asked for", (fresh) =>
    withLead(fresh, async (store) => {
      for (const by of ["a", "b", "c"]) await store.persist([{ ...audit, by }]);
      deepEqual(await store.audit(2), [{ ...audit, by: "c" }, { ...audit, by: "b" }]);
      equal((await store.audit(10)).length, 3);
    }));

  test("keeps the order of writes that were begun at once", (fresh) =>
    withLead(fresh, async (store) => {
      const revisions = Array.from({ length: 50 }, (_, index) => index + 1);
      await Promise.all(
        revisions.map((revision) =>
          store.persist([{ kind: "catalog", text: `${revision}`, revision }])
        ),
      );
      deepEqual((await store.load()).catalog, { text: "50", revision: 50 });
    }));
}

const measured = create(MeasurementSchema, {
  model: "m1",
  profile: "p",
  fingerprint: "0123",
  engine: "vllm",
  engineVersion: "1.0",
  hardwareClass: "h100-80g",
  shape: "chat",
  ttftMs: 1_000,
  requestsPerSecond: 12.5,
  atMs: 1_800_000_000_123n,
  by: reason,
});

function testMeasurements(test: Test): void {
  test("keeps the newest measurement of each profile, hardware, version and shape", async (fresh) => {
    const record = (parts: Partial<typeof measured>): StoreRecord => ({
      kind: "measurement",
      measurement: { ...measured, ...parts },
    });
    await withLead(fresh, async (store) => {
      deepEqual(await store.measurements(), []);
      await store.persist([record({ requestsPerSecond: 1 }), record({})]);
      await store.persist([
        record({ shape: "rag", atMs: 1_900_000_000_000n }),
        record({ engineVersion: "1.1", atMs: 1_700_000_000_000n }),
        record({ hardwareClass: "cpu", atMs: 1_600_000_000_000n }),
        record({ fingerprint: "'; --", atMs: 1_500_000_000_000n }),
      ]);
    });
    await withLead(fresh, async (store) => {
      const all = await store.measurements();
      deepEqual(
        all.map(({ shape, engineVersion, hardwareClass, fingerprint }) => [
          shape,
          engineVersion,
          hardwareClass,
          fingerprint,
        ]),
        [
          ["rag", "1.0", "h100-80g", "0123"],
          ["chat", "1.0", "h100-80g", "0123"],
          ["chat", "1.1", "h100-80g", "0123"],
          ["chat", "1.0", "cpu", "0123"],
          ["chat", "1.0", "h100-80g", "'; --"],
        ],
      );
      deepEqual(all[1], measured, "the second of two, whole");
    });
  });

  test("forgets the oldest measurements, so that there are not ever more", (fresh) =>
    withLead(fresh, async (store) => {
      const records = Array.from({ length: MEASUREMENTS_MAX + 3 }, (_, index): StoreRecord => ({
        kind: "measurement",
        measurement: { ...measured, fingerprint: `${index}`, atMs: BigInt(index) },
      }));
      await store.persist(records.slice(-MEASUREMENTS_MAX - 3));
      const all = await store.measurements();
      deepEqual([all.length, all[0]?.fingerprint], [MEASUREMENTS_MAX, `${MEASUREMENTS_MAX + 2}`]);
      equal(all.at(-1)?.fingerprint, "3");
    }));
}

function testTerms(test: Test): void {
  test("raises the term with every start, and keeps it while one control goes on leading", async (fresh) => {
    await withStore(fresh, async (store) => {
      const claim = newClaim();
      equal(await lead(store, claim), 1);
      await store.persist(EVERYTHING);
      equal(await lead(store, claim), 3, "it has raised its term itself");
      await store.persist([audit]);
      equal(await lead(store, claim), 3);
      await store.release();
    });
    for (const term of [4, 5]) {
      await withStore(fresh, async (store) => {
        equal(await lead(store), term);
        await store.release();
      });
    }
  });

  test("never lowers the term, and writes all records or none", (fresh) =>
    withLead(fresh, async (store) => {
      await store.persist([{ kind: "term", term: 2 ** 40 }]);
      await store.persist([{ kind: "term", term: 2 ** 40 }]);
      await rejects(
        store.persist([...EVERYTHING.slice(1), { kind: "term", term: 5 }]),
        /Cannot save term 5: the store already has 1099511627776/,
      );
      const { knownNodes, catalog } = await store.load();
      deepEqual({ knownNodes, catalog }, { knownNodes: new Set(), catalog: undefined });
      deepEqual(await store.audit(10), []);
      await store.persist([audit]);
      deepEqual(await store.audit(10), [audit], "a refusal is no reason to refuse the next");
    }));

  test("takes no write from a control that does not lead, or leads no more", (fresh) =>
    withStore(fresh, async (store) => {
      await rejects(store.persist([audit]), /does not lead/);
      const claim = newClaim();
      await lead(store, claim);
      await store.persist([audit]);
      await store.release();
      await rejects(store.persist([audit]), /does not lead/);
      const term = await lead(store, claim);
      await store.persist([audit]);
      ok(term > 1);
      equal((await store.audit(10)).length, 2);
    }));
}

export async function withStore(place: StorePlace, work: (store: Store) => Promise<void>) {
  const store = await place.open();
  try {
    await work(store);
  } finally {
    await store.close();
  }
}

/** With a store whose lease is held, and given back at the end. */
async function withLead(place: StorePlace, work: (store: Store) => Promise<void>) {
  await withStore(place, async (store) => {
    await lead(store);
    await work(store);
    await store.release();
  });
}
