import { deepEqual, equal } from "node:assert/strict";
import { type GpuUse, unreleased } from "./gpu_release.ts";

const GPUS = [{ uuid: "GPU-a" }, { uuid: "GPU-b" }];

function use(uuid: string, usedMib?: number): GpuUse {
  const use = { uuid, index: 0, totalMib: 81_559, holders: [] };
  return usedMib === undefined ? use : { ...use, usedMib };
}

Deno.test("unreleased() names the shard's GPUs that hold memory, and no others", () => {
  const uses = [use("GPU-a", 70_000), use("GPU-b", 600), use("GPU-c", 70_000)];
  deepEqual(unreleased(GPUS, uses)?.map(({ uuid }) => uuid), ["GPU-a"]);
  deepEqual(unreleased(GPUS, [use("GPU-a", 900), use("GPU-b", 4_000)]), []);
});

Deno.test("unreleased() takes unknown for neither free nor busy", () => {
  equal(unreleased(GPUS, undefined), undefined);
  equal(unreleased(GPUS, [use("GPU-a")]), undefined);
  equal(unreleased(GPUS, [use("GPU-c", 1)]), undefined);
  deepEqual(unreleased(GPUS, [use("GPU-a"), use("GPU-b", 9_000)])?.length, 1);
});
