import { deepEqual, equal, match, ok } from "node:assert/strict";
import type { Weights } from "@heddle/proto/gen/weights";
import { encodeWeightsState, type WeightsState } from "@heddle/proto/weights_state";
import type { Plain } from "@heddle/proto/plain";
import { misfit } from "@heddle/common/model/fits";
import { readLaunchArgs } from "@heddle/common/model/launch_args";
import type { Model } from "../catalog.ts";
import { sourceHint, sourceKey } from "../facts/source_hint.ts";
import { observe } from "../observing/observe.ts";
import { firstProfile, modelOf, type NodeShape, T0, worldWith } from "../testing/builders.ts";
import type { World } from "../world.ts";
import { candidates } from "./candidate.ts";
import { place } from "./place.ts";
import { specsOf } from "./spec.ts";

const GIB = 2 ** 30;
const SOURCE = "hf://org/model";
const MODEL = modelOf({ name: "m", source: SOURCE }, { tp: 1 });

function weights(state: WeightsState, version: string): Plain<Weights> {
  return {
    want: { source: SOURCE, include: [], exclude: [], version },
    state: encodeWeightsState(state),
    folder: "",
    path: "",
    sizeBytes: BigInt(40 * GIB),
    doneBytes: 0n,
    reason: "",
    message: "",
    shardIds: [],
  };
}

/** A world whose nodes have these weights, and this much room. */
function worldOf(
  model: Model,
  nodes: Readonly<Record<string, NodeShape>>,
  has: Readonly<Record<string, Plain<Weights>>> = {},
  freeBytes = 2 ** 40,
): World {
  const world = worldWith([model], nodes);
  return {
    ...world,
    nodes: new Map([...world.nodes].map(([name, node]) => {
      const own = has[name];
      return [name, {
        ...node,
        inventory: {
          ...node.inventory,
          modelDirs: [{ path: "/m", freeBytes: BigInt(freeBytes), shared: false }],
          ...(own === undefined ? {} : { weights: { weights: [own] } }),
        },
      }];
    })),
  };
}

function placed(world: World, model: Model) {
  const hint = sourceHint(world, model);
  return place({ model, profile: firstProfile(model), hint }, candidates(world, T0).values());
}

Deno.test("place() prefers a node that has the weights, then one that fetches them", () => {
  const nodes = { n1: {}, n2: {}, n3: {} };
  const ready = placed(worldOf(MODEL, nodes, { n3: weights("ready", "c1") }), MODEL);
  ok(ready.kind === "placed");
  equal(ready.seats[0]?.candidate.name, "n3");
  const fetching = placed(worldOf(MODEL, nodes, { n2: weights("fetching", "c1") }), MODEL);
  ok(fetching.kind === "placed");
  equal(fetching.seats[0]?.candidate.name, "n2");
});

Deno.test("place() refuses a node whose disk is too small for what it would fetch", () => {
  const seen = { version: "c1", totalBytes: 40 * GIB, weightBytes: 40 * GIB };
  const event = { kind: "source_inspected", source: sourceKey(MODEL), seen } as const;
  const short = observe(worldOf(MODEL, { n1: {} }, {}, 30 * GIB), event, T0);
  const refused = placed(short, MODEL);
  equal(refused.kind, "none");
  const [rejection] = refused.rejections;
  equal(rejection?.reason, "disk_short");
  match(rejection?.detail ?? "", /want 40960 have 30720: MiB for hf:\/\/org\/model in \/m/);
  // One that has them needs no room.
  const there = worldOf(MODEL, { n1: {} }, { n1: weights("ready", "c1") }, 0);
  equal(placed(there, MODEL).kind, "placed");
});

Deno.test("place() knows by the source alone that a GPU is too small", () => {
  const seen = { version: "c1", totalBytes: 131 * GIB, weightBytes: 131 * GIB };
  const event = { kind: "source_inspected", source: sourceKey(MODEL), seen } as const;
  const refused = placed(observe(worldOf(MODEL, { n1: {} }), event, T0), MODEL);
  equal(refused.kind, "none");
  equal(refused.rejections[0]?.reason, "memory_short");
});

Deno.test("place() counts the context that an engine will insist on, where the source says what it takes", () => {
  const model = modelOf({ name: "m", source: SOURCE }, { tp: 2 });
  const facts = { heads: 64, kvHeads: 8, contextMax: 131_072, kvBytesPerToken: 327_680 };
  const placing = (args: readonly string[]) => {
    const asked = { ...model, profiles: [{ ...firstProfile(model), args: [...args] }] };
    const seen = { version: "c1", totalBytes: 131 * GIB, weightBytes: 131 * GIB, model: facts };
    const event = { kind: "source_inspected", source: sourceKey(asked), seen } as const;
    return placed(observe(worldOf(asked, { n1: {} }), event, T0), asked);
  };
  const refused = placing([]);
  equal(refused.kind, "none");
  match(
    refused.rejections[0]?.detail ?? "",
    /want 96279 have 81559: MiB on each GPU for the weights, a context of 131072 tokens and what vllm needs beside; at most 44403 tokens would fit/,
  );
  equal(placing(["--max-model-len", "8192"]).kind, "placed");
  equal(placing(["--cpu-offload-gb", "40"]).kind, "placed", "nobody can tell");
});

Deno.test("place() judges a GPU's memory as its agent will before it launches", () => {
  for (const engine of ["vllm", "sglang", "llamacpp"] as const) {
    for (const weightGib of [20, 70, 73, 77, 79, 140, 150, 155, 158]) {
      for (const tp of [1, 2]) {
        const model = modelOf({ name: "m", source: SOURCE }, { tp, engine });
        const weightBytes = weightGib * GIB;
        const seen = { version: "c1", totalBytes: weightBytes, weightBytes, model: {} };
        const event = { kind: "source_inspected", source: sourceKey(model), seen } as const;
        const here = placed(observe(worldOf(model, { n1: {} }), event, T0), model);
        const gpus = Array.from({ length: tp }, (_, index) => ({
          index,
          gpuClass: "h100-80g",
          totalMib: 81_559,
        }));
        const there = misfit({
          engine,
          tp,
          pp: 1,
          gpus,
          args: readLaunchArgs([]),
          model: {},
          weightBytes,
        });
        equal(here.kind === "placed", there === undefined, `${engine} tp ${tp}: ${weightGib} GiB`);
      }
    }
  }
});

Deno.test("every node is told the version that the others have", () => {
  const world = worldOf(MODEL, { n1: {}, n2: {}, n3: {} }, {
    n2: weights("ready", "c2"),
    n3: weights("ready", "c2"),
  });
  const placement = placed(world, MODEL);
  ok(placement.kind === "placed");
  const request = { model: MODEL, profile: firstProfile(MODEL) };
  const { version } = sourceHint(world, MODEL);
  const how = { stopTimeoutMs: 0, weightsVersion: version };
  const [shard] = specsOf(request, placement, "r", how);
  deepEqual(shard?.spec.weights, { source: SOURCE, include: [], exclude: [], version: "c2" });
  // The simulated engine has no weights, and a path is nothing to fetch.
  const sim = { model: MODEL, profile: { ...firstProfile(MODEL), engine: "sim" as const } };
  equal(specsOf(sim, placement, "r", how)[0]?.spec.weights, undefined);
});
