import { deepEqual, equal } from "node:assert/strict";
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

Deno.test("parseNvlinkStatus() tells links that are all down from links that nobody told of", () => {
  const mig = "Nvlink queries are not supported for Devices in MIG mode\n";
  const down = "NVML: Unable to retrieve NVLink information as all links are inActive\n";
  equal(parseNvlinkStatus(`GPU 0: NVIDIA A100 (UUID: GPU-a)\n${mig}`).size, 0);
  equal(parseNvlinkStatus(down).size, 0, "of no GPU");
  const both = parseNvlinkStatus(
    `GPU 0: NVIDIA B200 (UUID: GPU-a)\n${down}GPU 1: NVIDIA B200 (UUID: GPU-b)\n\t Link 0: 25 GB/s\n`,
  );
  deepEqual([...both], [
    ["GPU-a", { active: 0, inactive: 0 }],
    ["GPU-b", { active: 1, inactive: 0 }],
  ]);
});
