import { deepEqual } from "node:assert/strict";
import { parseNvlinkStatus } from "./nvlink_status.ts";

const FIXTURES = new URL("../../../tests/fixtures/hardware/nvlink/", import.meta.url);

function counts(file: string): string[] {
  const text = Deno.readTextFileSync(new URL(file, FIXTURES));
  return [...parseNvlinkStatus(text).values()].map((each) => `${each.active}+${each.inactive}`);
}

Deno.test("parseNvlinkStatus() counts the links that are up and those that are not", () => {
  deepEqual(counts("a100-sxm-4gpu.txt"), ["12+0", "12+0", "12+0", "12+0"]);
  deepEqual(counts("gb200.txt"), ["18+0", "18+0"]);
  deepEqual(counts("v100-two-inactive.txt"), ["4+2"]);
});

Deno.test("parseNvlinkStatus() finds none in sentences", () => {
  deepEqual(
    parseNvlinkStatus(
      "GPU 0: NVIDIA A100 (UUID: GPU-a)\nNvlink queries are not supported for Devices in MIG mode\n" +
        "NVML: Unable to retrieve NVLink information as all links are inActive\n",
    ).size,
    0,
  );
});
