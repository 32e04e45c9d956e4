import { deepEqual } from "node:assert/strict";
import { parseComputeApps } from "./compute_apps.ts";

Deno.test("parseComputeApps() reads names with commas, and memory that is not told", () => {
  deepEqual(
    parseComputeApps(
      "gpu_uuid, pid, used_gpu_memory [MiB], process_name\n" +
        "GPU-aa, 524, [N/A], [Insufficient Permissions]\n" +
        "GPU-bb, 4110331, 68596 MiB, /opt/my, odd/python3\n" +
        "GPU-bb, 12, 55, x\nNo devices were found\n",
    ),
    [
      { gpuUuid: "GPU-aa", pid: 524, memoryMib: undefined, name: "[Insufficient Permissions]" },
      { gpuUuid: "GPU-bb", pid: 4110331, memoryMib: 68596, name: "/opt/my, odd/python3" },
      { gpuUuid: "GPU-bb", pid: 12, memoryMib: 55, name: "x" },
    ],
  );
});

Deno.test("parseComputeApps() takes no row without a GPU's UUID for one", () => {
  const fixture = new URL(
    "../../../tests/fixtures/hardware/compute-apps/container-and-wsl.noheader.csv",
    import.meta.url,
  );
  deepEqual(parseComputeApps(Deno.readTextFileSync(fixture)), []);
});
