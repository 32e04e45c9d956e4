import { deepEqual, equal, ok } from "node:assert/strict";
import type { Model } from "../catalog.ts";
import { record } from "../deciding/record.ts";
import { observe } from "../observing/observe.ts";
import { reconcile } from "../reconcile.ts";
import { firstProfile, modelOf, type NodeShape, T0, worldWith } from "../testing/builders.ts";
import type { World } from "../world.ts";
import { candidates } from "./candidate.ts";
import { summarise } from "./explain.ts";
import { place, type Placement } from "./place.ts";
import { specsOf } from "./spec.ts";

const GIB = 2 ** 30;

function placeIn(world: World, model: Model): Placement {
  return place({ model, profile: firstProfile(model) }, candidates(world, T0).values());
}

function placeOn(nodes: Readonly<Record<string, NodeShape>>, model: Model): Placement {
  return placeIn(worldWith([model], nodes), model);
}

const nodesOf = (placement: Placement) =>
  placement.kind === "placed" ? placement.seats.map((seat) => seat.candidate.name) : "none";
const reasonsOf = (placement: Placement) =>
  placement.rejections.map(({ node, reason, detail }) => `${node} ${reason}: ${detail}`);

Deno.test("place() gives the reason and the numbers of each node when none fits", () => {
  const model = modelOf({ name: "m" }, { tp: 8, engine_version: "0.28.1" });
  const placement = placeOn({
    n1: { gpus: 4 },
    n2: { gpuClass: "a100-80g" },
    n3: { engines: [["sglang", "0.5.17"]] },
    n4: { engines: [["vllm", "0.27.0"]] },
    n5: { portBlocks: 0 },
  }, model);
  equal(placement.kind, "none");
  deepEqual(reasonsOf(placement), [
    "n1 gpus_free: want 8 have 4: 4 in all",
    "n2 gpu_class: want h100-80g have a100-80g",
    "n3 engine_missing: want vllm have sglang",
    "n4 engine_version: want vllm 0.28.1 have 0.27.0",
    "n5 ports_free: want 1 have 0: all 0 blocks of ports are held",
  ]);
  equal(
    summarise(placement),
    "0/5 nodes fit: 1 engine_missing, 1 engine_version, 1 gpu_class, 1 gpus_free, 1 ports_free",
  );
});

Deno.test("place() rejects nodes that are cordoned, drained, silent or cut off", () => {
  const model = modelOf({ name: "m" });
  let world = worldWith([model], { n1: {}, n2: {}, n3: {} });
  world = observe(world, { kind: "cordon", node: "n1", by: "ops", reason: "" }, T0);
  world = observe(world, { kind: "drain", node: "n2", by: "ops", reason: "" }, T0);
  world = observe(world, { kind: "stream_closed", node: "n3" }, T0);
  const profile = firstProfile(model);
  const at = (now: number) => place({ model, profile }, candidates(world, now).values());
  deepEqual(at(T0).rejections.map((each) => each.reason), ["cordoned", "draining", "unreachable"]);
  deepEqual(at(T0 + 15_000).rejections.map((each) => each.reason), Array(3).fill("unreachable"));
  deepEqual(at(T0 + 60_000).rejections.map((each) => each.reason), Array(3).fill("lost"));
});

Deno.test("place() gives a single-node replica the fullest node that still fits", () => {
  const model = modelOf({ name: "m" }, { tp: 2 });
  equal(
    String(nodesOf(placeOn({ n1: { gpus: 8 }, n2: { gpus: 2 }, n3: { gpus: 4 } }, model))),
    "n2",
  );
});

Deno.test("place() breaks ties by name, whatever the order of nodes", () => {
  const model = modelOf({ name: "m" });
  equal(String(nodesOf(placeOn({ n3: {}, n1: {}, n2: {} }, model))), "n1");
});

Deno.test("place() takes a multi-node replica from one fabric only", () => {
  const model = modelOf({ name: "m" }, { tp: 8, pp: 2, nodes: 2 });
  const across = placeOn({ n1: { fabric: "ib-a" }, n2: { fabric: "ib-b" }, n3: {} }, model);
  equal(across.kind, "none");
  deepEqual(reasonsOf(across), [
    "n1 fabric_short: want 2 have 1: nodes fit in ib-a",
    "n2 fabric_short: want 2 have 1: nodes fit in ib-b",
    "n3 fabric_short: want 2 have 1: it is on no usable fabric",
  ]);
  equal(summarise(across), "0/3 nodes fit: 3 fabric_short");
  const within = placeOn(
    { n1: { fabric: "ib-a" }, n2: { fabric: "ib-b" }, n3: { fabric: "ib-b" } },
    model,
  );
  deepEqual(nodesOf(within), ["n2", "n3"]);
  if (within.kind === "placed") {
    deepEqual(within.seats.map((seat) => [seat.fabric, seat.hcas.length]), [["ib-b", 8], [
      "ib-b",
      8,
    ]]);
  }
});

Deno.test("place() gives every rank the same number of HCAs", () => {
  const model = modelOf({ name: "m" }, { tp: 8, pp: 2, nodes: 2 });
  const uneven = placeOn({ n1: { fabric: "ib", hcas: 8 }, n2: { fabric: "ib", hcas: 4 } }, model);
  equal(uneven.kind, "none");
  deepEqual(uneven.rejections.map((each) => each.reason), ["fabric_short", "hca_count"]);
  const pair = placeOn(
    { n1: { fabric: "ib", hcas: 8 }, n2: { fabric: "ib", hcas: 4 }, n3: { fabric: "ib", hcas: 4 } },
    model,
  );
  deepEqual(nodesOf(pair), ["n2", "n3"]);
});

Deno.test("place() joins nodes of two fabrics by the one they share, with its HCAs and no others", () => {
  const model = modelOf({ name: "m" }, { tp: 8, pp: 2, nodes: 2 });
  const placement = placeOn({
    n1: { fabric: "ib-a", hcas: 4, otherFabric: "roce", otherHcas: 2 },
    n2: { fabric: "ib-b", hcas: 4, otherFabric: "roce", otherHcas: 2 },
    n3: { fabric: "ib-c", hcas: 4 },
  }, model);
  ok(placement.kind === "placed");
  deepEqual(
    placement.seats.map(({ candidate, fabric, hcas }) => [
      candidate.name,
      fabric,
      hcas.map((hca) => hca.name).join(),
    ]),
    [["n1", "roce", "mlx5_4,mlx5_5"], ["n2", "roce", "mlx5_4,mlx5_5"]],
  );
  deepEqual(reasonsOf(placement), ["n3 fabric_short: want 2 have 1: nodes fit in ib-c"]);
});

Deno.test("place() says of a node of two fabrics that neither has another node", () => {
  const model = modelOf({ name: "m" }, { tp: 8, pp: 2, nodes: 2 });
  const placement = placeOn({ n1: { fabric: "ib-a", otherFabric: "ib-b" }, n2: {} }, model);
  deepEqual(placement.rejections.map(({ node, reason }) => [node, reason]), [
    ["n1", "fabric_short"],
    ["n2", "fabric_short"],
  ]);
});

Deno.test("place() gives GPUs of one class on a node that has two", () => {
  const shapes = { n1: { otherClass: "a100-80g", cliqueSize: 0 } };
  for (const [gpu_class, wanted] of [["h100-80g", [0, 1, 2, 3]], ["a100-80g", [4, 5, 6, 7]]]) {
    const placement = placeOn(shapes, modelOf({ name: "m" }, { tp: 4, gpu_class }));
    ok(placement.kind === "placed");
    deepEqual(placement.seats[0]?.choice.gpus.map(({ index }) => index), wanted);
  }
  const more = placeOn(shapes, modelOf({ name: "m" }, { tp: 8 }));
  equal(more.rejections[0]?.reason, "gpus_free");
});

Deno.test("place() lists HCAs by number, not as text", () => {
  const model = modelOf({ name: "m" }, { tp: 8, pp: 2, nodes: 2 });
  const placement = placeOn(
    { n1: { fabric: "ib", hcas: 12 }, n2: { fabric: "ib", hcas: 12 } },
    model,
  );
  ok(placement.kind === "placed");
  deepEqual(
    placement.seats[0]?.hcas.map((hca) => hca.name),
    Array.from({ length: 12 }, (_, index) => `mlx5_${index}`),
  );
});

Deno.test("place() never uses a GPU with a problem, and says which are unusable", () => {
  const model = modelOf({ name: "m" }, { tp: 8 });
  const world = worldWith([model], { n1: {} });
  const node = world.nodes.get("n1");
  ok(node !== undefined);
  const gpus = node.inventory.gpus.map((gpu) =>
    gpu.index === 3
      ? { ...gpu, problems: [{ reason: "xid_fatal", detail: "Xid 79", remedy: "reset it" }] }
      : gpu
  );
  const sick = { ...node, inventory: { ...node.inventory, gpus } };
  const placement = placeIn({ ...world, nodes: new Map([["n1", sick]]) }, model);
  deepEqual(reasonsOf(placement), ["n1 gpus_free: want 8 have 7: 1 unusable (xid_fatal)"]);
});

Deno.test("place() keeps a tensor-parallel group in the smallest clique that is large enough", () => {
  const model = modelOf({ name: "m" }, { tp: 2 });
  const placement = placeOn({ n1: { gpus: 8, cliqueSize: 4 } }, model);
  ok(placement.kind === "placed");
  const cliques = new Set(placement.seats[0]?.choice.gpus.map((gpu) => gpu.nvlinkClique));
  equal(cliques.size, 1);
  equal(placement.scores.nvlink, 1);
  deepEqual(placement.notes, []);
});

Deno.test("place() says when no clique is large enough for a tensor-parallel group", () => {
  const placement = placeOn({ n1: { gpus: 8, cliqueSize: 2 } }, modelOf({ name: "m" }, { tp: 4 }));
  ok(placement.kind === "placed");
  equal(placement.scores.nvlink, 0);
  deepEqual(placement.notes, [
    "no NVLink clique of 4 GPUs is free on n1; tensor parallelism goes over PCIe there",
  ]);
});

Deno.test("place() prefers a node with a large enough clique over a fuller one without", () => {
  const model = modelOf({ name: "m" }, { tp: 4 });
  const placement = placeOn(
    { n1: { gpus: 4, cliqueSize: 2 }, n2: { gpus: 8, cliqueSize: 8 } },
    model,
  );
  deepEqual(nodesOf(placement), ["n2"]);
});

Deno.test("place() wants the weights where the source is a path", () => {
  const model = modelOf({ name: "m", source: "/models/a.gguf" }, { engine: "llamacpp" });
  const placement = placeOn(
    { n1: {}, n2: { modelFiles: [["/models/a.gguf", 4 * GIB]] } },
    model,
  );
  deepEqual(nodesOf(placement), ["n2"]);
  deepEqual(reasonsOf(placement), [
    "n1 weights_missing: want /models/a.gguf; the node does not report it",
  ]);
});

Deno.test("place() counts memory when the size of the weights is known", () => {
  const model = modelOf({ name: "m", source: "/models/big" }, { tp: 2 });
  const shape = { modelFiles: [["/models/big", 200 * GIB]] as const };
  deepEqual(reasonsOf(placeOn({ n1: shape }, model)), [
    "n1 memory_short: want 112418 have 81559: MiB on each GPU for the weights and what vllm needs " +
    "beside",
  ]);
  equal(
    placeOn({ n1: shape }, modelOf({ name: "m", source: "/models/big" }, { tp: 4 })).kind,
    "placed",
  );
});

Deno.test("place() promises host memory to profiles without GPUs once", () => {
  const model = modelOf({ name: "m", source: "sim" }, {
    gpu_class: undefined,
    engine: "sim",
    memory: "48GiB",
  });
  const shape = { gpus: 0, memoryBytes: 64 * GIB };
  equal(placeOn({ n1: shape }, model).kind, "placed");
  const world = worldWith([model], { n1: shape });
  const [candidate] = candidates(world, T0).values();
  ok(candidate !== undefined);
  const placement = place(
    { model, profile: firstProfile(model) },
    [{ ...candidate, promisedMemoryBytes: 48 * GIB }],
  );
  deepEqual(reasonsOf(placement), [
    "n1 memory_short: want 49152 have 16384: MiB of host memory that is not promised to replicas",
  ]);
});

Deno.test("place() follows labels, and an operator's label wins over the node's", () => {
  const model = modelOf({ name: "m" }, { node_selector: { rack: "r2" } });
  let world = worldWith([model], { n1: { labels: { rack: "r1" } } });
  deepEqual(reasonsOf(placeIn(world, model)), ["n1 node_selector: want rack=r2 have rack=r1"]);
  world = observe(
    world,
    { kind: "label", node: "n1", set: { rack: "r2" }, remove: [], by: "ops" },
    T0,
  );
  deepEqual(nodesOf(placeIn(world, model)), ["n1"]);
});

Deno.test("place() says of a node that fits and was not chosen how it compares", () => {
  const placement = placeOn(
    { n1: { gpus: 2 }, n2: { gpus: 8 } },
    modelOf({ name: "m" }, { tp: 2 }),
  );
  deepEqual(nodesOf(placement), ["n1"]);
  equal(placement.rejections[0]?.reason, "outscored");
  equal(summarise(placement), "2/2 nodes fit");
});

Deno.test("place() tells a node that is too small for ever from one that is busy", () => {
  const model = modelOf({ name: "m" }, { tp: 4 });
  let world = worldWith([model], { n1: { gpus: 2 }, n2: { gpus: 4 } });
  world = record(world, reconcile(world, T0), T0);
  deepEqual(reasonsOf(placeIn(world, model)), [
    "n1 gpus_free: want 4 have 2: 2 in all",
    "n2 gpus_free: want 4 have 0: 4 held by replicas",
  ]);
});

Deno.test("place() counts as held what is held of the class that is asked for", () => {
  const held = modelOf({ name: "a" }, { tp: 4, gpu_class: "a100-80g" });
  const model = modelOf({ name: "m" }, { tp: 8 });
  const shapes = { n1: { otherClass: "a100-80g", cliqueSize: 0 } };
  let world = worldWith([held], shapes);
  world = record(world, reconcile(world, T0), T0);
  equal(world.replicas.size, 1);
  deepEqual(reasonsOf(placeIn(world, model)), ["n1 gpus_free: want 8 have 4: 4 in all"]);
});

Deno.test("place() says of a node where the model serves already that it does", () => {
  const model = modelOf({ name: "m" });
  let world = worldWith([model], { n1: {}, n2: {} });
  world = record(world, reconcile(world, T0), T0);
  const [serves] = [...world.replicas.values()].flatMap(({ shards }) => shards);
  deepEqual(reasonsOf(placeIn(world, model)), [
    `${serves?.node} outscored: it fits, and has 1 of this model's shards already; ` +
    "what was chosen has none",
  ]);
});

Deno.test("summarise() says when there is no node at all", () => {
  equal(summarise(placeOn({}, modelOf({ name: "m" }))), "0/0 nodes fit: no node has registered");
});

Deno.test("specsOf() gives a GID index only where all ports of all ranks have the same", () => {
  const model = modelOf({ name: "m" }, { tp: 8, pp: 2, nodes: 2 });
  const placement = placeOn({ n1: { fabric: "roce" }, n2: { fabric: "roce" } }, model);
  ok(placement.kind === "placed");
  const told = (indexOf: (rank: number) => number | undefined) => {
    const seats = placement.seats.map((seat, rank) => {
      const index = indexOf(rank);
      return {
        ...seat,
        hcas: seat.hcas.map((hca) => index === undefined ? hca : { ...hca, roceGidIndex: index }),
      };
    });
    const options = { stopTimeoutMs: 0, weightsVersion: "" };
    const request = { model, profile: firstProfile(model) };
    return specsOf(request, { ...placement, seats }, "m-1-1", options)
      .map(({ spec }) => spec.roceGidIndex);
  };
  deepEqual(told(() => 3), [3, 3]);
  deepEqual(told((rank) => 3 + rank), [undefined, undefined]);
  deepEqual(told((rank) => rank === 0 ? 3 : undefined), [undefined, undefined]);
  deepEqual(told(() => undefined), [undefined, undefined]);
});
