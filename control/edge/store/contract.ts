/** What every implementation of `Store` must do, as tests to run against each of them. */
import { deepEqual, equal, throws } from "node:assert/strict";
import type { Audit, StoreRecord } from "../../core/store_record.ts";
import { NO_DECISIONS } from "../../core/world.ts";
import type { Store } from "./store.ts";

/** A place for one store: opened again, it holds what was written before. */
export interface StorePlace extends AsyncDisposable {
  open(): Promise<Store>;
}

const reason = "fan is loud; 'quoted' \u2603";
const cordon = { kind: "cordon", by: "ann", reason, at: 1_800_000_000_123 } as const;
const pause = { by: "ann", reason: "", at: 2.5 };
const scale = { by: "bob", reason, at: 3, replicas: 4 };
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
  { kind: "node_decision", node: "n1", decision: cordon },
  { kind: "paused", model: "m1", decision: pause },
  { kind: "scale", model: "m1", decision: scale },
  { kind: "labels", node: "n1", labels: { rack: "r1", "": "" } },
  audit,
];

/** Registers the tests under `name`; `place` makes a fresh, empty place. */
export function testStoreContract(name: string, place: () => Promise<StorePlace>): void {
  const test = (what: string, work: (place: StorePlace) => Promise<void>) =>
    Deno.test(`${name} ${what}`, async () => {
      await using fresh = await place();
      await work(fresh);
    });

  test("is empty when it is new", (fresh) =>
    withStore(fresh, (store) => {
      deepEqual(store.load(), {
        term: 0,
        knownNodes: new Set(),
        decisions: NO_DECISIONS,
        catalog: undefined,
      });
      deepEqual(store.audit(10), []);
    }));

  test("holds everything across a restart", async (fresh) => {
    await withStore(fresh, (store) => store.persist(EVERYTHING));
    await withStore(fresh, (store) => {
      deepEqual(store.load(), {
        term: 3,
        knownNodes: new Set(["n1", "n2"]),
        decisions: {
          nodes: new Map([["n1", cordon]]),
          paused: new Map([["m1", pause]]),
          scales: new Map([["m1", scale]]),
          labels: new Map([["n1", { rack: "r1", "": "" }]]),
        },
        catalog: { text: "models: []\n", revision: 9 },
      });
      deepEqual(store.audit(10), [audit]);
    });
  });

  test("is idempotent, and keeps the newest of each kind and subject", (fresh) =>
    withStore(fresh, (store) => {
      store.persist(EVERYTHING);
      const before = store.load();
      store.persist(EVERYTHING);
      deepEqual(store.load(), before);
      const drain = { ...cordon, kind: "drain", by: "bob" } as const;
      store.persist([
        { kind: "node_decision", node: "n1", decision: cordon },
        { kind: "node_decision", node: "n1", decision: drain },
        { kind: "node_decision", node: "n2", decision: cordon },
        { kind: "catalog", text: "", revision: 10 },
      ]);
      deepEqual(
        store.load().decisions.nodes,
        new Map<string, typeof cordon | typeof drain>([["n1", drain], ["n2", cordon]]),
      );
      deepEqual(store.load().catalog, { text: "", revision: 10 });
    }));

  test("removes what is taken back, also what was never there", (fresh) =>
    withStore(fresh, (store) => {
      store.persist(EVERYTHING);
      for (const subject of ["1", "7"]) {
        store.persist([
          { kind: "node_decision", node: `n${subject}` },
          { kind: "paused", model: `m${subject}` },
          { kind: "scale", model: `m${subject}` },
          { kind: "labels", node: `n${subject}` },
          { kind: "known_node", node: `n${subject}`, known: false },
        ]);
      }
      const { decisions, knownNodes } = store.load();
      deepEqual(decisions, NO_DECISIONS);
      deepEqual(knownNodes, new Set(["n2"]));
    }));

  test("never lowers the term, and writes all records or none", (fresh) =>
    withStore(fresh, (store) => {
      store.persist([{ kind: "term", term: 2 ** 40 }]);
      store.persist([{ kind: "term", term: 2 ** 40 }]);
      throws(
        () => store.persist([...EVERYTHING.slice(1), { kind: "term", term: 5 }]),
        /Cannot save term 5: the store already has 1099511627776/,
      );
      const { term, knownNodes, catalog } = store.load();
      deepEqual({ term, knownNodes, catalog }, {
        term: 2 ** 40,
        knownNodes: new Set(),
        catalog: undefined,
      });
      deepEqual(store.audit(10), []);
    }));

  test("gives the newest audit records first, at most as many as asked for", (fresh) =>
    withStore(fresh, (store) => {
      for (const by of ["a", "b", "c"]) store.persist([{ ...audit, by }]);
      deepEqual(store.audit(2), [{ ...audit, by: "c" }, { ...audit, by: "b" }]);
      equal(store.audit(10).length, 3);
    }));
}

async function withStore(place: StorePlace, work: (store: Store) => void) {
  const store = await place.open();
  try {
    work(store);
  } finally {
    store.close();
  }
}
