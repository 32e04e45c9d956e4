import { deepEqual, equal } from "node:assert/strict";
import fc from "fast-check";
import { observe } from "./observing/observe.ts";
import { publish } from "./publish.ts";
import { isCommand, reconcile } from "./reconcile.ts";
import { record } from "./deciding/record.ts";
import { catalog } from "./testing/builders.ts";
import { FakeNode } from "./testing/fake_node.ts";
import { casesOf } from "./testing/random.ts";
import { Simulation } from "./testing/simulation.ts";
import { startWorld, type World } from "./world.ts";

const NODES = ["n1", "n2", "n3", "n4", "n5"];

/** A fleet on which every model runs, one of them over two nodes. */
function running(seed: number): Simulation {
  const nodes = NODES.map((name) =>
    new FakeNode({ name, shape: { gpus: 8, fabric: "ib" }, loadMs: 1_000, stopMs: 500 })
  );
  const sim = new Simulation({
    seed,
    nodes,
    catalog: catalog(
      {
        name: "wide",
        source: "org/w",
        profiles: [{ name: "p", gpu_class: "h100-80g", tp: 8, pp: 2, nodes: 2 }],
      },
      {
        name: "small",
        source: "org/s",
        scaling: { min: 3 },
        profiles: [{ name: "p", gpu_class: "h100-80g", tp: 2 }],
      },
    ),
  });
  sim.run(30_000);
  return sim;
}

/** Registers nodes in `order`, with a pass after each, `gapMs` apart; every decision is given. */
function takeOver(
  sim: Simulation,
  order: readonly string[],
  gapMs: number,
): { world: World; actions: string[]; removed: string[] } {
  let now = sim.now + 1_000;
  let world = startWorld({
    cluster: "sim",
    storedTerm: sim.world.term,
    catalog: sim.world.catalog,
    knownNodes: sim.world.knownNodes,
    decisions: sim.world.decisions,
  }, now);
  const actions: string[] = [];
  const removed: string[] = [];
  const pass = () => {
    const plan = reconcile(world, now);
    actions.push(...plan.actions.map((action) => `${action.kind} ${action.replica}`));
    world = publish(record(world, plan, now), now);
    removed.push(...world.published.removed.keys());
  };
  pass();
  for (const name of order) {
    now += gapMs;
    const node = sim.nodes.get(name);
    if (node !== undefined) world = observe(world, node.register(now), now);
    pass();
  }
  return { world, actions, removed };
}

Deno.test("a new control that hears from every node starts nothing and stops nothing", () => {
  const sim = running(1);
  equal([...sim.nodes.values()].flatMap((node) => node.running()).length, 5);
  fc.assert(
    fc.property(
      fc.shuffledSubarray([...sim.nodes.keys()], { minLength: NODES.length }),
      fc.integer({ min: 0, max: 14_000 }),
      (order, gapMs) => {
        const { world, actions, removed } = takeOver(sim, order, gapMs);
        deepEqual(actions, []);
        deepEqual(removed, []);
        deepEqual([...world.published.endpoints.keys()], [...sim.world.published.endpoints.keys()]);
        equal(world.term > sim.world.term, true);
      },
    ),
    casesOf(1_000),
  );
});

Deno.test("a new control adopts a replica whole, whichever of its nodes comes first", () => {
  const sim = running(2);
  const wide = (world: World) => [...world.replicas.values()].find((each) => each.model === "wide");
  for (const order of [NODES, NODES.toReversed()]) {
    const { world } = takeOver(sim, order, 100);
    deepEqual(wide(world)?.shards.map((shard) => shard.rank), [0, 1]);
    deepEqual(
      wide(world)?.shards.map((shard) => shard.node),
      wide(sim.world)?.shards.map((shard) => shard.node),
    );
  }
});

Deno.test("a new control keeps the endpoints of a node that it has not heard from", () => {
  const sim = running(3);
  const { world, removed } = takeOver(sim, ["n1"], 1_000);
  deepEqual(world.published.settledNodes, ["n1"]);
  equal(world.published.settled, false);
  deepEqual(removed, []);
});

Deno.test("a new control places nothing before all known nodes or the settling time", () => {
  const sim = running(4);
  const { actions } = takeOver(sim, ["n1", "n2", "n3", "n4"], 10_000);
  deepEqual(actions, []);
  const late = takeOver(sim, ["n1", "n2", "n3", "n4", "n4"], 16_000);
  equal(late.actions.length > 0, true);
});

Deno.test("registering again changes nothing that a plan would act on", () => {
  const sim = running(5);
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...NODES), { maxLength: 6 }), (again) => {
      let world = sim.world;
      for (const name of again) {
        const node = sim.nodes.get(name);
        if (node !== undefined) world = observe(world, node.register(sim.now), sim.now);
      }
      deepEqual(reconcile(world, sim.now).actions.filter(isCommand), []);
      equal(world.term, sim.world.term);
    }),
    casesOf(1_000),
  );
});
