import { deepEqual, equal } from "node:assert/strict";
import type { Profile } from "../catalog.ts";
import { catalog } from "../testing/builders.ts";
import { carried, type Counted, sumCapacity } from "./capacity.ts";
import type { StoredMeasurement } from "./measurement.ts";
import type { Group } from "./running.ts";

const MEASURED: StoredMeasurement = {
  model: "m",
  profile: "fast",
  fingerprint: "f",
  engine: "vllm",
  engineVersion: "1.0",
  hardwareClass: "h100-80g",
  shape: "chat",
  ttftMs: 1_000,
  tpotMs: 100,
  requestsPerSecond: 8,
  concurrency: 16,
  within: 1,
  outputTokensPerSecond: 900,
  replicas: 1,
  unstable: false,
  spread: 0,
  atMs: 5n,
  by: "ann",
};

const [MODEL] = catalog({
  name: "m",
  source: "s",
  profiles: [
    { name: "fast", gpu_class: "h100-80g", weight: 1 },
    { name: "slow", gpu_class: "l4-24g", weight: 1 },
  ],
}).models;
const [FAST, SLOW] = MODEL?.profiles ?? [];

function group(name: string, count: number, profile: Profile | undefined): Group {
  const fingerprint = name[0] ?? "";
  return { profile, name, fingerprint, count, engineVersions: count > 0 ? ["1.0"] : [] };
}

function counted(parts: Partial<Counted> = {}): Counted {
  return {
    shape: "chat",
    measurements: [MEASURED, slow({})],
    ready: [group("fast", 2, FAST), group("slow", 1, SLOW)],
    most: [group("fast", 4, FAST), group("slow", 1, SLOW)],
    ...parts,
  };
}

function slow(parts: Partial<StoredMeasurement>): StoredMeasurement {
  return {
    ...MEASURED,
    profile: "slow",
    fingerprint: "s",
    hardwareClass: "l4-24g",
    requestsPerSecond: 2,
    ...parts,
  };
}

Deno.test("sumCapacity() adds replicas times what one was measured to carry, and proposes weights by it", () => {
  const { nowPerSecond, mostPerSecond, unmeasuredReplicas, profiles } = sumCapacity(counted());
  deepEqual([nowPerSecond, mostPerSecond, unmeasuredReplicas], [18, 34, 0]);
  deepEqual(profiles.map(({ measuredWeight }) => measuredWeight), [100, 25]);
  deepEqual(profiles.map(({ notes }) => notes), [
    [],
    ["its weight brings it 33 % of requests, it carries 11 %"],
  ]);
});

Deno.test("sumCapacity() counts what was never measured as nothing, says so, and proposes no weight", () => {
  for (
    const [measurements, note] of [
      [[MEASURED], []],
      [[MEASURED, slow({ shape: "rag" })], ["measured for rag only"]],
      [[MEASURED, slow({ hardwareClass: "a10-24g" })], ["measured for chat only"]],
    ] as const
  ) {
    const { nowPerSecond, unmeasuredReplicas, profiles } = sumCapacity(counted({ measurements }));
    deepEqual([nowPerSecond, unmeasuredReplicas], [16, 1]);
    deepEqual(profiles.map(({ measuredWeight }) => measuredWeight), [0, 0]);
    deepEqual(profiles[1]?.notes, note);
  }
});

Deno.test("sumCapacity() takes the measurement of the engine version that runs, and else says of which it is", () => {
  const older = { ...MEASURED, engineVersion: "0.9", requestsPerSecond: 5, atMs: 9n };
  equal(sumCapacity(counted({ measurements: [older, MEASURED] })).nowPerSecond, 16);
  const { nowPerSecond, profiles } = sumCapacity(counted({ measurements: [older] }));
  equal(nowPerSecond, 10);
  deepEqual(profiles[0]?.notes, ["measured with vllm 0.9, it runs 1.0"]);
});

Deno.test("sumCapacity() shows what only runs any more, and a profile of which nothing runs", () => {
  const gone = group("old", 1, undefined);
  const { profiles } = sumCapacity(counted({ ready: [gone], most: [group("fast", 0, FAST)] }));
  deepEqual(profiles.map(({ group, readyReplicas, notes }) => [group.name, readyReplicas, notes]), [
    ["old", 1, ["the catalog has it no more"]],
    ["fast", 0, []],
  ]);
});

Deno.test("carried() is the same sum for any replicas", () => {
  equal(carried([group("fast", 3, FAST), group("slow", 2, SLOW)], counted()), 28);
});
