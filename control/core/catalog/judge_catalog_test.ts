import { deepEqual, equal } from "node:assert/strict";
import { catalog } from "../testing/builders.ts";
import { FakeNode } from "../testing/fake_node.ts";
import { Simulation } from "../testing/simulation.ts";
import type { World } from "../world.ts";
import { judgeCatalog } from "./judge_catalog.ts";

const model = (name: string, min = 1) => ({
  name,
  source: "s",
  scaling: { min },
  profiles: [{ name: "p", gpu_class: "h100-80g" }],
});
const four = ["a", "b", "c", "d", "e"].map((name) => model(name));

/** Five models, each with one running replica. */
function running(): { world: World; now: number } {
  const sim = new Simulation({
    seed: 1,
    nodes: [new FakeNode({ name: "n1", shape: {}, loadMs: 500, stopMs: 500 })],
    catalog: catalog(...four),
  });
  sim.run(10_000);
  return sim;
}

Deno.test("judgeCatalog() lets changes through that stop a quarter of what runs, or less", () => {
  const { world, now } = running();
  deepEqual(judgeCatalog(world, catalog(...four.slice(1)), now), { kind: "apply" });
  deepEqual(judgeCatalog(world, catalog(...four, model("f")), now), { kind: "apply" });
});

Deno.test("judgeCatalog() makes a change wait that stops more, with the numbers", () => {
  const { world, now } = running();
  deepEqual(judgeCatalog(world, catalog(...four.slice(2)), now), {
    kind: "wait",
    reason: "stops_many",
    detail: "it would stop 2 of 5 running replicas",
  });
});

Deno.test("judgeCatalog() makes an empty text wait, also when nothing runs", () => {
  const { world, now } = running();
  const idle = { ...world, replicas: new Map() };
  for (const each of [world, idle]) {
    const verdict = judgeCatalog(each, catalog(), now);
    equal(verdict.kind === "wait" && verdict.reason, "empty");
  }
});

Deno.test("judgeCatalog() makes a change that drops models wait until control knows what runs", () => {
  const { world, now } = running();
  const unsettled = { ...world, startedAt: now, knownNodes: new Set(["n1", "n2"]) };
  const verdict = judgeCatalog(unsettled, catalog(...four.slice(1)), now);
  equal(verdict.kind === "wait" && verdict.reason, "settling");
  deepEqual(judgeCatalog(unsettled, catalog(...four, model("f")), now), { kind: "apply" });
});

Deno.test("judgeCatalog() applies the first catalog of all", () => {
  const { world, now } = running();
  const first = { ...world, catalog: { ...world.catalog, revision: 0 } };
  deepEqual(judgeCatalog(first, catalog(), now), { kind: "apply" });
});
