/** What every implementation of `Store` must do, as tests to run against each of them. */
import { deepEqual, equal, rejects } from "node:assert/strict";
import type { AuditEntry, NodeDecision, Store } from "./store.ts";

/** A place for one store: opened again, it holds what was written before. */
export interface StorePlace extends AsyncDisposable {
  open(): Promise<Store>;
}

const entry: AuditEntry = { atMs: 5, who: "ann", what: "cordon", target: "n1", reason: "fan" };
const cordon: NodeDecision = {
  node: "n1",
  cordoned: true,
  draining: false,
  decidedBy: "ann",
  reason: "fan is loud; 'quoted' \u2603",
  decidedAtMs: 1_800_000_000_123,
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
        knownNodes: [],
        decisions: [],
        catalog: undefined,
      });
      deepEqual(await store.audit(10), []);
    }));

  test("holds everything across a restart", async (fresh) => {
    const catalog = { text: "models: []\n", revision: { term: 3, sequence: 9 }, appliedAtMs: 7 };
    await withStore(fresh, async (store) => {
      await store.saveTerm(3);
      await store.addKnownNodes(["n2", "n1"]);
      await store.addKnownNodes(["n1", "n3"]);
      await store.saveDecision(cordon, entry);
      await store.saveCatalog(catalog, { ...entry, what: "apply_catalog", target: "catalog" });
    });
    await withStore(fresh, async (store) => {
      deepEqual(await store.load(), {
        term: 3,
        knownNodes: ["n1", "n2", "n3"],
        decisions: [cordon],
        catalog,
      });
      deepEqual((await store.audit(10)).map(({ what }) => what), ["apply_catalog", "cordon"]);
    });
  });

  test("replaces a decision, and ends it", (fresh) =>
    withStore(fresh, async (store) => {
      const drain = { ...cordon, draining: true, decidedBy: "bob" };
      await store.saveDecision(cordon, entry);
      await store.saveDecision(drain, { ...entry, what: "drain" });
      await store.saveDecision({ ...cordon, node: "n0" }, entry);
      deepEqual((await store.load()).decisions, [{ ...cordon, node: "n0" }, drain]);
      await store.clearDecision("n1", { ...entry, what: "uncordon" });
      await store.clearDecision("never cordoned", { ...entry, what: "uncordon" });
      deepEqual((await store.load()).decisions, [{ ...cordon, node: "n0" }]);
    }));

  test("keeps only the newest catalog, and an empty one is not none", (fresh) =>
    withStore(fresh, async (store) => {
      const first = { text: "a", revision: { term: 1, sequence: 1 }, appliedAtMs: 1 };
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
      for (const who of ["a", "b", "c"]) await store.saveDecision(cordon, { ...entry, who });
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
