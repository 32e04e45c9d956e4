import { deepEqual, equal, ok } from "node:assert/strict";
import { candidates } from "./candidate.ts";
import { firstProfile, modelOf, type NodeShape, T0, worldWith } from "../testing/builders.ts";
import { place } from "./place.ts";
import { compareScores, type Scores } from "./scores.ts";

const WORST: Scores = { spread: 0.5, nvlink: 0, packing: 0, numa: 0, fabric: 0, weights: 0 };
const BEST: Scores = { spread: 0.5, nvlink: 1, packing: 1, numa: 1, fabric: 1, weights: 1 };

/** Where a replica goes when these nodes have so many of the model already. */
function placed(
  nodes: Readonly<Record<string, NodeShape & { readonly has?: number }>>,
  profile: Readonly<Record<string, unknown>>,
) {
  const model = modelOf({ name: "m", source: "org/weights" }, profile);
  const all = [...candidates(worldWith([model], nodes), T0).values()].map((candidate) => ({
    ...candidate,
    models: new Map([["m", nodes[candidate.name]?.has ?? 0]]),
  }));
  const placement = place({ model, profile: firstProfile(model) }, all);
  ok(placement.kind === "placed");
  return placement;
}

Deno.test("no sum of other scores wins over spread, however many replicas there are", () => {
  for (const count of [0, 1, 5, 1_000]) {
    const spread = (same: number) => 1 / (1 + same);
    const fewer = { ...WORST, spread: spread(count) };
    const more = { ...BEST, spread: spread(count + 1) };
    ok(compareScores(fewer, more) < 0, `${count}`);
    ok(compareScores(more, fewer) > 0, `${count}`);
  }
});

Deno.test("no sum of other scores wins over a clique, at equal spread", () => {
  ok(compareScores({ ...WORST, nvlink: 1 }, { ...BEST, nvlink: 0 }) < 0);
  ok(compareScores({ ...WORST, nvlink: 0.5 }, { ...BEST, nvlink: 0.25 }) < 0);
});

Deno.test("what was added in another order is equal", () => {
  const [a, b] = [0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1];
  ok(a !== b);
  equal(compareScores({ ...WORST, spread: a }, { ...WORST, spread: b }), 0);
  equal(compareScores({ ...WORST, spread: a, packing: 1 }, { ...WORST, spread: b }) < 0, true);
});

Deno.test("place() spreads replicas over nodes before it looks for a clique or a fuller node", () => {
  const nodes = { n1: { cliqueSize: 8 }, n2: { cliqueSize: 0 } };
  const first = placed(nodes, { tp: 4 });
  deepEqual(first.seats.map(({ candidate }) => candidate.name), ["n1"]);
  const second = placed({ ...nodes, n1: { cliqueSize: 8, has: 1 } }, { tp: 4 });
  deepEqual(second.seats.map(({ candidate }) => candidate.name), ["n2"]);
  deepEqual(second.notes, [
    "no NVLink clique of 4 GPUs is free on n2; tensor parallelism goes over PCIe there",
  ]);
  equal(
    second.rejections[0]?.detail,
    "it fits, and has 1 of this model's shards already; what was chosen has none",
  );
});

Deno.test("place() shares a node when only that one fits", () => {
  const { seats } = placed({ n1: { has: 1 }, n2: { gpus: 2 } }, { tp: 4 });
  deepEqual(seats.map(({ candidate }) => candidate.name), ["n1"]);
});

Deno.test("place() takes the fabric whose nodes have fewer replicas of the model", () => {
  const { seats } = placed({
    n1: { fabric: "ib-a", has: 1 },
    n2: { fabric: "ib-a" },
    n3: { fabric: "ib-b", cliqueSize: 0 },
    n4: { fabric: "ib-b", cliqueSize: 0 },
  }, { tp: 8, pp: 2, nodes: 2 });
  deepEqual(seats.map(({ candidate }) => candidate.name), ["n3", "n4"]);
});
