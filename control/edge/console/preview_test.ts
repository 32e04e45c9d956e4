import { deepEqual, equal, rejects } from "node:assert/strict";
import { catalogPlan } from "../../core/catalog/catalog_plan.ts";
import { foreseePass } from "../../core/catalog/foresight.ts";
import { modelOf, T0, worldWith } from "../../core/testing/builders.ts";
import type { World } from "../../core/world.ts";
import { preview } from "./preview.ts";

/** The world once everything that it wants runs. */
function running(world: World): World {
  let so: Parameters<typeof foreseePass>[0] = {
    world,
    now: T0,
    passes: 0,
    reasons: new Map(),
    waiting: [],
    end: "not_yet",
  };
  while (so.end === "not_yet") so = foreseePass(so);
  equal(catalogPlan(world, so).shortages.length, 0);
  return so.world;
}

const LATER = T0 + 100;

Deno.test("preview() says what a drain stops, and where it goes on", async () => {
  const world = running(worldWith([modelOf({ name: "m" })], { n1: {}, n2: {} }));
  const [replica] = world.replicas.values();
  const node = replica?.shards[0]?.node ?? "";
  const other = node === "n1" ? "n2" : "n1";
  const { stops, starts, shortages } = await preview(world, { kind: "drain", node }, LATER);
  deepEqual(stops.map(({ id, nodes }) => [id, nodes]), [[replica?.id, [node]]]);
  deepEqual(starts.map(({ model, nodes }) => [model, nodes]), [["m", [other]]]);
  deepEqual(shortages, []);
  equal(world.decisions.nodes.size, 0, "nothing is decided");
});

Deno.test("preview() says what would be missing where there is no other room", async () => {
  const world = running(worldWith([modelOf({ name: "m" })], { n1: {} }));
  const { stops, starts, shortages } = await preview(world, { kind: "drain", node: "n1" }, LATER);
  deepEqual([stops.length, starts.length], [1, 0]);
  deepEqual(shortages.map(({ model, wanted, running }) => [model, wanted, running]), [["m", 1, 0]]);
});

Deno.test("preview() says what another number of replicas comes to", async () => {
  const world = running(worldWith([modelOf({ name: "m" })], { n1: {} }));
  const up = await preview(world, { kind: "scale", model: "m", replicas: 3 }, LATER);
  deepEqual([up.starts.length, up.stops.length, up.kept], [2, 0, 1]);
  const down = await preview(world, { kind: "scale", model: "m", replicas: 0 }, LATER);
  deepEqual([down.starts.length, down.stops.length, down.kept], [0, 1, 0]);
  const same = await preview(world, { kind: "cordon", node: "n1" }, LATER);
  deepEqual([same.starts.length, same.stops.length, same.kept], [0, 0, 1]);
});

Deno.test("preview() refuses what is no decision", async () => {
  const world = worldWith([], {});
  for (
    const asked of [undefined, {}, { kind: "strike", struck: "x" }, { kind: "scale", model: "m" }]
  ) {
    await rejects(preview(world, asked, LATER), /Cannot foresee this/);
  }
});
