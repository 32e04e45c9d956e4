import { deepEqual, equal, ok } from "node:assert/strict";
import { firstProfile, gpu, hca, modelOf, T0, worldWith } from "../testing/builders.ts";
import { candidates } from "./candidate.ts";
import { chooseGpus } from "./gpu_choice.ts";
import { place } from "./place.ts";

/** GPUs 0 to 3 are on NUMA node 0, the others on 1; adapters likewise. */
const EIGHT = Array.from({ length: 8 }, (_, index) => gpu("n1", index));

interface Case {
  readonly size: number;
  readonly groups?: number;
  /** Numbers of the adapters. */
  readonly hcas: readonly number[];
  readonly free?: readonly number[];
  readonly cliqueSize?: number;
}

function chosen({ size, groups = 1, hcas, free, cliqueSize = 8 }: Case) {
  const gpus = EIGHT.filter(({ index }) => free?.includes(index) ?? true)
    .map(({ index }) => gpu("n1", index, { cliqueSize }));
  const ports = hcas.map((index) => hca(index, "ib"));
  return chooseGpus(gpus, { size, groups, hcas: ports })?.gpus.map(({ index }) => index);
}

Deno.test("chooseGpus() takes GPUs near the adapters", () => {
  deepEqual(chosen({ size: 4, hcas: [4, 5] }), [4, 5, 6, 7]);
  deepEqual(chosen({ size: 4, hcas: [0] }), [0, 1, 2, 3]);
  deepEqual(chosen({ size: 2, groups: 2, hcas: [6] }), [4, 5, 6, 7]);
  // Near, though fewer of the others are free and would be the smaller group.
  deepEqual(chosen({ size: 2, hcas: [7], free: [0, 1, 4, 5, 6, 7] }), [4, 5]);
});

Deno.test("chooseGpus() takes as many as there are near the adapters, then others", () => {
  deepEqual(chosen({ size: 4, hcas: [4], free: [0, 1, 2, 3, 6, 7] }), [0, 1, 6, 7]);
  deepEqual(chosen({ size: 6, hcas: [5] }), [0, 1, 4, 5, 6, 7]);
});

Deno.test("chooseGpus() keeps to one clique before it looks where adapters are", () => {
  deepEqual(chosen({ size: 4, hcas: [4], free: [0, 1, 2, 3, 5, 6, 7], cliqueSize: 4 }), [
    0,
    1,
    2,
    3,
  ]);
  deepEqual(chosen({ size: 2, hcas: [4], cliqueSize: 2 }), [4, 5]);
  deepEqual(chosen({ size: 2, hcas: [4], free: [0, 1, 2, 3, 4, 5, 6, 7], cliqueSize: 4 }), [4, 5]);
});

Deno.test("chooseGpus() goes by index where adapters are everywhere, nowhere or unknown", () => {
  deepEqual(chosen({ size: 4, hcas: [0, 4] }), [0, 1, 2, 3]);
  deepEqual(chosen({ size: 4, hcas: [] }), [0, 1, 2, 3]);
  const unknown = { ...hca(4, "ib"), numaNode: undefined };
  const none = { ...hca(4, "ib"), numaNode: -1 };
  for (const port of [unknown, none]) {
    const choice = chooseGpus(EIGHT, { size: 4, groups: 1, hcas: [port] });
    deepEqual(choice?.gpus.map(({ index }) => index), [0, 1, 2, 3]);
  }
});

Deno.test("place() gives a rank GPUs near the ports of its fabric, not of another", () => {
  const model = modelOf({ name: "m" }, { tp: 4, pp: 2, nodes: 2 });
  const world = worldWith([model], { n1: { fabric: "ib" }, n2: { fabric: "ib" } });
  const all = [...candidates(world, T0).values()].map((candidate) => {
    // The other half of the ports is of a fabric that nobody declared here, or is down.
    const hcas = candidate.inventory.hcas.map((port, index) =>
      index < 2 ? { ...port, fabric: "other" } : index < 4 ? { ...port, active: false } : port
    );
    return { ...candidate, inventory: { ...candidate.inventory, hcas } };
  });
  const placement = place({ model, profile: firstProfile(model) }, all);
  ok(placement.kind === "placed");
  for (const seat of placement.seats) {
    deepEqual(seat.choice.gpus.map(({ index }) => index), [4, 5, 6, 7]);
  }
  equal(placement.scores.numa, 1);
});
