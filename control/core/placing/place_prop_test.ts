import { deepEqual, equal, ok } from "node:assert/strict";
import fc from "fast-check";
import {
  fabricsOf,
  firstProfile,
  modelOf,
  type NodeShape,
  T0,
  worldWith,
} from "../testing/builders.ts";
import { casesOf } from "../testing/random.ts";
import { candidates, withShard } from "./candidate.ts";
import { place, type Placed } from "./place.ts";
import { specsOf } from "./spec.ts";

const NOTHING = { stopTimeoutMs: 0, weightsVersion: "" };
const RUNS = casesOf(1_000);

const shape: fc.Arbitrary<NodeShape> = fc.record({
  gpus: fc.integer({ min: 0, max: 8 }),
  gpuClass: fc.constantFrom("h100-80g", "a100-80g"),
  cliqueSize: fc.constantFrom(0, 2, 4, 8),
  hcas: fc.constantFrom(2, 4, 8),
  portBlocks: fc.integer({ min: 0, max: 3 }),
  otherHcas: fc.constantFrom(2, 4, 8),
}).chain((base) =>
  fc.constantFrom<NodeShape>(
    base,
    { ...base, fabric: "ib-a" },
    { ...base, fabric: "ib-b" },
    { ...base, fabric: "ib-a", otherFabric: "ib-b" },
    { ...base, fabric: "ib-b", otherFabric: "ib-a", otherClass: "a100-80g" },
  )
);
const cluster = fc.array(shape, { maxLength: 8 }).map((shapes) =>
  Object.fromEntries(shapes.map((each, index) => [`n${index + 1}`, each]))
);
const model = fc.record({
  tp: fc.constantFrom(1, 2, 4),
  nodes: fc.constantFrom(1, 1, 2, 3),
  gpuClass: fc.constantFrom("h100-80g", "a100-80g"),
}).map(({ tp, nodes, gpuClass }) =>
  modelOf({ name: "m" }, { tp, pp: nodes, nodes, gpu_class: gpuClass })
);

function requestOf(of: ReturnType<typeof modelOf>) {
  return { model: of, profile: firstProfile(of) };
}

Deno.test("place() explains every node once when none fits", () => {
  fc.assert(
    fc.property(cluster, model, (nodes, wanted) => {
      const result = place(requestOf(wanted), candidates(worldWith([], nodes), T0).values());
      const used = result.kind === "placed" ? result.seats.map((seat) => seat.candidate.name) : [];
      const named = [...used, ...result.rejections.map((each) => each.node)].sort();
      deepEqual(named, Object.keys(nodes).sort());
    }),
    RUNS,
  );
});

Deno.test("place() keeps a replica on one fabric and one class, with distinct nodes and GPUs", () => {
  fc.assert(
    fc.property(cluster, model, (nodes, wanted) => {
      const request = requestOf(wanted);
      const result = place(request, candidates(worldWith([], nodes), T0).values());
      if (result.kind === "none") return;
      equal(result.seats.length, request.profile.nodes);
      equal(new Set(result.seats.map((seat) => seat.candidate.name)).size, request.profile.nodes);
      equal(new Set(result.seats.map((seat) => seat.hcas.length)).size, 1);
      for (const seat of result.seats) {
        const own = nodes[seat.candidate.name];
        equal(seat.choice.gpus.length, request.profile.gpus_per_node);
        equal(new Set(seat.choice.gpus.map((gpu) => gpu.uuid)).size, seat.choice.gpus.length);
        ok(seat.choice.gpus.every((gpu) => gpu.gpuClass === request.profile.gpu_class));
        if (request.profile.nodes > 1) {
          const of = fabricsOf(own ?? {}).find(({ name }) => name === seat.fabric);
          ok(of !== undefined);
          deepEqual(
            seat.hcas.map((hca) => hca.name),
            Array.from({ length: of.count }, (_, index) => `mlx5_${of.from + index}`),
          );
          equal(seat.fabric, result.seats[0]?.fabric);
        }
      }
      for (const score of Object.values(result.scores)) ok(score >= 0 && score <= 1);
    }),
    RUNS,
  );
});

Deno.test("place() does not depend on the order of nodes", () => {
  fc.assert(
    fc.property(cluster, model, fc.infiniteStream(fc.nat()), (nodes, wanted, keys) => {
      const all = [...candidates(worldWith([], nodes), T0).values()];
      const shuffled = all.map((each) => ({ each, key: keys.next().value ?? 0 }))
        .sort((a, b) => a.key - b.key).map(({ each }) => each);
      deepEqual(place(requestOf(wanted), shuffled), place(requestOf(wanted), all));
    }),
    RUNS,
  );
});

Deno.test("place() never turns yes into no when a node is added", () => {
  fc.assert(
    fc.property(cluster, shape, model, (nodes, more, wanted) => {
      const request = requestOf(wanted);
      const before = place(request, candidates(worldWith([], nodes), T0).values());
      if (before.kind === "none") return;
      const grown = { ...nodes, extra: more };
      equal(place(request, candidates(worldWith([], grown), T0).values()).kind, "placed");
    }),
    RUNS,
  );
});

Deno.test("place(), asked until it says no, never gives a GPU or a port twice", () => {
  fc.assert(
    fc.property(cluster, model, (nodes, wanted) => {
      const request = requestOf(wanted);
      const ledger = new Map(candidates(worldWith([], nodes), T0));
      const given = new Set<string>();
      // A node has at most 3 blocks of ports here, so this ends.
      for (let count = 0;; count++) {
        ok(count <= 24);
        const placed = place(request, ledger.values());
        if (placed.kind === "none") return;
        give(placed, `r${count}`);
      }

      function give(placed: Placed, id: string): void {
        for (const { node, spec } of specsOf(request, placed, id, NOTHING)) {
          for (const key of [...spec.gpus.map((gpu) => gpu.uuid), `${node}:${spec.portFirst}`]) {
            ok(!given.has(key), `${key} was given twice`);
            given.add(key);
          }
          const candidate = ledger.get(node);
          ok(candidate !== undefined);
          ledger.set(node, withShard(candidate, "m", spec));
        }
      }
    }),
    RUNS,
  );
});
