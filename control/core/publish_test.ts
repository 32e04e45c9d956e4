import { deepEqual, equal, match, ok } from "node:assert/strict";
import { catalog } from "./testing/builders.ts";
import { FakeNode } from "./testing/fake_node.ts";
import { Simulation } from "./testing/simulation.ts";

const MODEL = {
  name: "m",
  source: "org/w",
  profiles: [{ name: "p", gpu_class: "h100-80g" }],
};

function fleet(nodes: number, min: number): Simulation {
  const sim = new Simulation({
    seed: 1,
    known: true,
    catalog: catalog({ ...MODEL, scaling: { min } }),
    nodes: Array.from(
      { length: nodes },
      (_, index) =>
        new FakeNode({ name: `n${index + 1}`, shape: { gpus: 1 }, loadMs: 2_000, stopMs: 500 }),
    ),
  });
  sim.run(20_000);
  return sim;
}

Deno.test("publish() tells routers a model's band and capacity, and nothing where the catalog has none", () => {
  const told = (more: Record<string, unknown>) => {
    const sim = new Simulation({
      seed: 1,
      known: true,
      catalog: catalog({ ...MODEL, ...more, scaling: { min: 0 } }),
      nodes: [],
    });
    sim.run(1_000);
    const { band, capacity } = sim.world.published.models.get("m") ?? {};
    return [band, capacity];
  };
  deepEqual(told({ band: "bronze", capacity: 12 }), ["bronze", 12]);
  deepEqual(told({}), ["", undefined]);
});

const LONG_MS = 10_000_000;

Deno.test("publish() keeps what is lost and missed, to be asked last, and says why it is missed", () => {
  const sim = fleet(2, 2);
  const ids = [...sim.world.published.endpoints.keys()];
  const [gone = ""] = ids;
  sim.silence(sim.world.published.endpoints.get(gone)?.node ?? "", LONG_MS);
  sim.run(90_000);
  deepEqual([...sim.world.published.endpoints.keys()].sort(), ids.toSorted());
  equal(sim.world.published.endpoints.get(gone)?.degraded, true);
  equal(sim.world.published.removed.has(gone), false);
  equal(sim.world.published.models.get("m")?.reason, "");
  const [other = ""] = ids.filter((id) => id !== gone);
  sim.silence(sim.world.published.endpoints.get(other)?.node ?? "", LONG_MS);
  sim.run(90_000);
  equal(sim.world.published.endpoints.size, 2);
  match(sim.world.published.models.get("m")?.reason ?? "", /0\/2 nodes fit: 2 lost/);
  deepEqual(sim.violations, []);
});

Deno.test("publish() drops what is lost as soon as its replacement is ready, and not before", () => {
  const sim = fleet(2, 1);
  const [gone = ""] = sim.world.published.endpoints.keys();
  sim.silence(sim.world.published.endpoints.get(gone)?.node ?? "", LONG_MS);
  let together = 0;
  for (let step = 0; step < 400; step++) {
    sim.step();
    const { endpoints, removed } = sim.world.published;
    ok(endpoints.size > 0, `nothing is left at ${sim.at()}`);
    if (endpoints.has(gone)) continue;
    equal(removed.get(gone), "lost");
    together++;
  }
  ok(together > 0, "it was dropped in the end");
});

Deno.test("publish() drops what is lost of a model that nobody wants more of", () => {
  const sim = fleet(2, 2);
  const [gone = ""] = sim.world.published.endpoints.keys();
  sim.silence(sim.world.published.endpoints.get(gone)?.node ?? "", LONG_MS);
  sim.run(70_000);
  ok(sim.world.published.endpoints.has(gone));
  sim.dispatch({ kind: "scale", model: "m", replicas: 1, by: "ops", reason: "" });
  sim.run(1_000);
  equal(sim.world.published.removed.get(gone), "lost");
});

Deno.test("publish() shows a node that comes back as it is, without a gap", () => {
  const sim = fleet(1, 1);
  const [id = ""] = sim.world.published.endpoints.keys();
  sim.silence("n1", 80_000);
  for (let step = 0; step < 480; step++) {
    sim.step();
    ok(sim.world.published.endpoints.has(id), `it is gone at ${sim.at()}`);
  }
  equal(sim.world.published.endpoints.get(id)?.degraded, false);
  equal(sim.nodes.get("n1")?.running().length, 1);
});
