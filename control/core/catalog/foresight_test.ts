import { deepEqual, equal, match, ok } from "node:assert/strict";
import fc from "fast-check";
import type { Catalog } from "../catalog.ts";
import { catalog } from "../testing/builders.ts";
import { FakeNode } from "../testing/fake_node.ts";
import { Simulation } from "../testing/simulation.ts";
import { type CatalogPlan, catalogPlan } from "./catalog_plan.ts";
import { beginForesight, foreseePass } from "./foresight.ts";

/** A quiet fleet of two nodes, settled on its catalog. */
function settledFleet(first: Catalog, gpus = 4): Simulation {
  const sim = new Simulation({
    seed: 1,
    known: true,
    catalog: first,
    nodes: ["n1", "n2"].map((name) =>
      new FakeNode({ name, shape: { gpus }, loadMs: 1_000, stopMs: 500 })
    ),
  });
  // What is asked for now sleeps later, and nothing is foreseen of time.
  sim.router.quiet = true;
  sim.run(120_000);
  return sim;
}

function foresee(sim: Simulation, next: Catalog): CatalogPlan {
  const before = sim.world;
  let foreseen = beginForesight(before, next, sim.now);
  while (foreseen.end === "not_yet") foreseen = foreseePass(foreseen);
  equal(sim.world, before, "looking ahead changes nothing");
  return catalogPlan(before, foreseen);
}

const model = (name: string, count: number, profile: object = {}) => ({
  name,
  source: "org/w",
  scaling: { min: count, max: Math.max(count, 1) },
  profiles: [{ name: "p", gpu_class: "h100-80g", tp: 1, ...profile }],
});

Deno.test("a catalog that changes nothing starts and stops nothing", () => {
  const sim = settledFleet(catalog(model("a", 2)));
  const plan = foresee(sim, catalog(model("a", 2)));
  deepEqual(plan, {
    changes: [],
    starts: [],
    stops: [],
    kept: 2,
    shortages: [],
    incomplete: false,
  });
});

Deno.test("what is added starts where there is room, what leaves stops and says why", () => {
  const sim = settledFleet(catalog(model("a", 1), model("b", 1)));
  const [leaving] = [...sim.world.replicas.values()].filter((replica) => replica.model === "b");
  const plan = foresee(sim, catalog(model("a", 1), model("c", 2)));
  deepEqual(plan.changes, [
    { model: "b", kind: "removed", parts: [] },
    { model: "c", kind: "added", parts: [] },
  ]);
  deepEqual(plan.starts.map(({ model, profile }) => [model, profile]), [["c", "p"], ["c", "p"]]);
  deepEqual(plan.stops.map(({ replicaId, reason }) => [replicaId, reason]), [
    [leaving?.id, "model_removed"],
  ]);
  equal(plan.kept, 1);
});

Deno.test("a profile that changes replaces every engine, one after the other", () => {
  const sim = settledFleet(catalog(model("a", 3)));
  const plan = foresee(sim, catalog(model("a", 3, { args: ["--new"] })));
  deepEqual(plan.changes, [{ model: "a", kind: "replaced", parts: ["profile p"] }]);
  equal(plan.starts.length, 3);
  deepEqual(plan.stops.map(({ reason }) => reason), Array(3).fill("profile_changed"));
  const replaced = plan.starts.map(({ replaces }) => replaces).toSorted();
  deepEqual(replaced, plan.stops.map(({ replicaId }) => replicaId).toSorted());
  deepEqual([plan.kept, plan.shortages], [0, []]);
});

Deno.test("a start that takes a stopped engine's place says whose, and one more says nothing", () => {
  const sim = settledFleet(catalog(model("a", 1), model("b", 1)));
  const [old] = [...sim.world.replicas.values()].filter((replica) => replica.model === "a");
  const plan = foresee(sim, catalog(model("a", 2, { name: "q", args: ["--new"] })));
  deepEqual(
    plan.starts.map(({ model, replaces }) => [model, replaces]).toSorted(),
    [
      ["a", undefined],
      ["a", old?.id],
    ].toSorted(),
  );
  deepEqual(plan.stops.map(({ model, reason }) => [model, reason]), [
    ["a", "profile_changed"],
    ["b", "model_removed"],
  ]);
});

Deno.test("what is fetched of a source is part of it: engines are replaced, and the plan says by what", () => {
  const sim = settledFleet(catalog(model("a", 1)));
  for (const [field, to] of [["source_include", ["*.json"]], ["source_exclude", ["*.bin"]]]) {
    const plan = foresee(sim, catalog({ ...model("a", 1), [`${field}`]: to }));
    deepEqual(plan.changes, [{ model: "a", kind: "replaced", parts: [field] }]);
  }
});

Deno.test("a change of weight, priority, aliases or fallbacks touches no engine", () => {
  const sim = settledFleet(catalog(model("a", 2)));
  const next = { ...model("a", 2, { weight: 7, priority: 3 }), aliases: ["x"] };
  const plan = foresee(sim, catalog(next));
  deepEqual(plan.changes, [{ model: "a", kind: "changed", parts: ["aliases", "profile p"] }]);
  deepEqual([plan.starts, plan.stops, plan.kept], [[], [], 2]);
});

Deno.test("what would not fit is said with its reason, also where engines stop to make room", () => {
  const sim = settledFleet(catalog(model("a", 4)));
  const plan = foresee(sim, catalog(model("a", 2), model("big", 3, { tp: 4, gpus_per_node: 4 })));
  const [short] = plan.shortages;
  equal(short?.model, "big");
  deepEqual([short?.wanted, (short?.running ?? 9) < 3], [3, true]);
  match(short?.detail ?? "", /nodes fit: .*gpus_free/);
});

Deno.test("what no node is large enough for is said to be so, and what waits for room is not", () => {
  const sim = settledFleet(catalog(model("a", 1)));
  const huge = { tp: 16, gpus_per_node: 16 };
  const [short] = foresee(sim, catalog(model("a", 1), model("huge", 1, huge))).shortages;
  match(short?.detail ?? "", /gpus_free; want 16 h100-80g on a node have \d in all$/);
  const wide = { tp: 1, pp: 99, nodes: 99, gpus_per_node: 1 };
  const [few] = foresee(sim, catalog(model("a", 1), model("wide", 1, wide))).shortages;
  match(few?.detail ?? "", /; want 99 nodes with 1 h100-80g have \d in all$/);
  const [busy] = foresee(sim, catalog(model("a", 99))).shortages;
  match(busy?.detail ?? "", /gpus_free$/);
});

Deno.test("a paused model is short and says who paused it", () => {
  const sim = settledFleet(catalog(model("a", 1)));
  sim.dispatch({ kind: "pause", model: "a", by: "ann", reason: "tests" });
  const plan = foresee(sim, catalog(model("a", 2)));
  deepEqual([plan.starts, plan.shortages.map(({ detail }) => detail)], [[], ["by ann: tests"]]);
});

const someModel = fc.record({
  name: fc.constantFrom("a", "b", "c"),
  count: fc.nat(4),
  tp: fc.constantFrom(1, 2),
  args: fc.constantFrom([], ["--x"]),
}).map(({ name, count, tp, args }) => model(name, count, { tp, args }));
const someCatalog = fc.uniqueArray(someModel, { maxLength: 3, selector: ({ name }) => name })
  .map((models) => catalog(...models));

// With room for everything: where there is none, who gets it depends on which engine is quicker.
Deno.test("what is foreseen is what comes to pass", () => {
  let started = 0;
  fc.assert(
    fc.property(someCatalog, someCatalog, (first, next) => {
      const sim = settledFleet(first, 16);
      const before = new Set([...sim.world.replicas.keys()]);
      const plan = foresee(sim, next);
      deepEqual([plan.incomplete, plan.shortages], [false, []]);
      started += plan.starts.length;
      sim.apply(next);
      sim.run(900_000);
      const after = [...sim.world.replicas.values()];
      const counted = (names: readonly string[]) => names.toSorted().join();
      const kept = after.filter(({ id }) => before.has(id));
      const fresh = after.filter(({ id }) => !before.has(id));
      deepEqual(
        [kept.length, counted(fresh.map((replica) => replica.model))],
        [plan.kept, counted(plan.starts.map((start) => start.model))],
      );
    }),
    { numRuns: 100 },
  );
  ok(started > 100, `${started} started in all`);
});
