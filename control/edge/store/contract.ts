/** What every implementation of `Store` must do, as tests to run against each of them. */
import { deepEqual, equal, rejects } from "node:assert/strict";
import { type Decisions, NO_DECISIONS } from "../../core/world.ts";
import type { AuditEntry, Store } from "./store.ts";

/** A place for one store: opened again, it holds what was written before. */
export interface StorePlace extends AsyncDisposable {
  open(): Promise<Store>;
}

const entry: AuditEntry = { atMs: 5, who: "ann", what: "cordon", target: "n1", reason: "fan" };
const reason = "fan is loud; 'quoted' \u2603";
const decisions: Decisions = {
  nodes: new Map([
    ["n1", { kind: "cordon", by: "ann", reason, at: 1_800_000_000_123 }],
    ["n2", { kind: "drain", by: "bob", reason: "", at: 1 }],
  ]),
  paused: new Map([["m1", { by: "ann", reason, at: 2 }]]),
  scales: new Map([["m1", { by: "ann", reason, at: 3, replicas: 4 }]]),
  labels: new Map([["n1", { rack: "r1", "": "" }]]),
};

/** Registers the tests under `name`; `place` makes a fresh, empty place. */
export function testStoreContract(name: string, place: () => Promise<StorePlace>): void {
  const test = (what: string, work: (place: StorePlace) => Promise<void>) =>
    Deno.test(`${name} ${what}`, async () => {
      await using fresh = await place();
      await work(fresh);
    });

  test("is empty when it is new", (fresh) =>
    withStore(fresh, async (store) => {
      deepEqual(await store.load(), {
        term: 0,
        knownNodes: new Set(),
        decisions: NO_DECISIONS,
        catalog: undefined,
      });
      deepEqual(await store.audit(10), []);
    }));

  test("holds everything across a restart", async (fresh) => {
    const catalog = { text: "models: []\n", revision: 9, appliedAtMs: 7 };
    await withStore(fresh, async (store) => {
      await store.saveTerm(3);
      await store.saveKnownNodes(new Set(["n2", "n1"]));
      await store.saveDecisions(decisions, entry);
      await store.saveCatalog(catalog, { ...entry, what: "apply_catalog", target: "catalog" });
    });
    await withStore(fresh, async (store) => {
      deepEqual(await store.load(), {
        term: 3,
        knownNodes: new Set(["n1", "n2"]),
        decisions,
        catalog,
      });
      deepEqual((await store.audit(10)).map(({ what }) => what), ["apply_catalog", "cordon"]);
    });
  });

  test("replaces decisions as a whole", (fresh) =>
    withStore(fresh, async (store) => {
      await store.saveDecisions(decisions, entry);
      const next = { ...NO_DECISIONS, scales: decisions.scales };
      await store.saveDecisions(next, { ...entry, what: "uncordon" });
      deepEqual((await store.load()).decisions, next);
    }));

  test("replaces the names of known nodes", (fresh) =>
    withStore(fresh, async (store) => {
      for (const names of [["n1", "n2"], ["n3", "n2"], ["n3", "n2"]]) {
        await store.saveKnownNodes(new Set(names));
      }
      deepEqual((await store.load()).knownNodes, new Set(["n2", "n3"]));
    }));

  test("keeps only the newest catalog, and an empty one is not none", (fresh) =>
    withStore(fresh, async (store) => {
      const first = { text: "a", revision: 1, appliedAtMs: 1 };
      await store.saveCatalog(first, entry);
      await store.saveCatalog({ ...first, text: "" }, entry);
      equal((await store.load()).catalog?.text, "");
    }));

  test("never lowers the term", (fresh) =>
    withStore(fresh, async (store) => {
      await store.saveTerm(2 ** 40);
      await store.saveTerm(2 ** 40);
      await rejects(store.saveTerm(5), /Cannot save term 5: the store already has 1099511627776/);
      equal((await store.load()).term, 2 ** 40);
    }));

  test("gives the newest audit entries first, at most as many as asked for", (fresh) =>
    withStore(fresh, async (store) => {
      for (const who of ["a", "b", "c"]) await store.saveDecisions(decisions, { ...entry, who });
      deepEqual(await store.audit(2), [{ ...entry, who: "c" }, { ...entry, who: "b" }]);
    }));
}

async function withStore(place: StorePlace, work: (store: Store) => Promise<void>) {
  const store = await place.open();
  try {
    await work(store);
  } finally {
    await store.close();
  }
}
