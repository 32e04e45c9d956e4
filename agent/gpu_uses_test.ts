import { deepEqual, equal } from "node:assert/strict";
import { createDiscovery } from "./inventory.ts";

/** Answers every query with what its folder says, one GPU; `ask` keeps the arguments. */
const NVIDIA_SMI = `#!/bin/sh
here=$(dirname "$0")
echo "$1" >>"$here/asked"
case $1 in
  --help-query-gpu)
    for field in index uuid name memory.total memory.used utilization.gpu driver_version; do
      printf '"%s"\\n\\n' "$field"
    done ;;
  --query-compute-apps=*) echo "GPU-a, 77, 9, python" ;;
  --query-gpu=*)
    row=
    for field in $(echo "\${1#*=}" | tr ',' ' '); do
      case $field in
        uuid) value=GPU-a ;;
        index) value=0 ;;
        name) value="NVIDIA H100 80GB HBM3" ;;
        memory.total) value=81559 ;;
        memory.used) value=$(cat "$here/used") ;;
        driver_version) value=580.1 ;;
        *) value="[N/A]" ;;
      esac
      row="\${row:+$row, }$value"
    done
    echo "$row" ;;
  *) exit 1 ;;
esac
`;

Deno.test("gpuUses() looks anew at each call, however young the last reading is", async () => {
  const root = await Deno.makeTempDir();
  try {
    const path = `${root}/nvidia-smi`;
    await Deno.writeTextFile(path, NVIDIA_SMI, { mode: 0o755 });
    await Deno.writeTextFile(`${root}/used`, "70000");
    const options = {
      sysfsRoot: root,
      nvidiaSmi: path,
      fabrics: [],
      modelDirs: [],
      enginePorts: { first: 20_000, last: 31_999, block: 256 },
      labels: {},
      now: () => performance.now(),
      managementAddress: "127.0.0.1",
      heldGpus: () => new Set<string>(),
    };
    const discovery = createDiscovery(options);
    const { signal } = new AbortController();
    await discovery.live(signal);
    await Deno.writeTextFile(`${root}/used`, "12");
    const holders = [{ pid: 77, name: "python" }];
    const gpu = { uuid: "GPU-a", index: 0, totalMib: 81_559, holders };
    deepEqual(await discovery.gpuUses(signal), [{ ...gpu, usedMib: 12 }]);
    await Deno.writeTextFile(`${root}/used`, "[Unknown Error]");
    deepEqual(await discovery.gpuUses(signal), [gpu], "unknown is not 0");
    const none = createDiscovery({ ...options, nvidiaSmi: undefined });
    equal(await none.gpuUses(signal), undefined);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});
