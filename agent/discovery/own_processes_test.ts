import { deepEqual, equal, match, ok } from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ProcessLauncher } from "../edge/launcher/process.ts";
import { strangersAmong } from "../edge/launcher/strangers.ts";
import { createDiscovery } from "../inventory.ts";
import { strangerWatch } from "./own_processes.ts";

const SHIM = fileURLToPath(new URL("../../bin/heddle-shim", import.meta.url));

/** Two GPUs; who computes on them stands in the file `apps`. */
const NVIDIA_SMI = `#!/bin/sh
here=$(dirname "$0")
case $1 in
  --help-query-gpu)
    for field in index uuid name memory.total memory.used driver_version; do
      printf '"%s"\\n\\n' "$field"
    done ;;
  --query-compute-apps=*) cat "$here/apps" ;;
  --query-gpu=*)
    for gpu in 0 1; do
      row=
      for field in $(echo "\${1#*=}" | tr ',' ' '); do
        case $field in
          uuid) value=GPU-$gpu ;;
          index) value=$gpu ;;
          name) value="NVIDIA H100 80GB HBM3" ;;
          memory.total) value=81559 ;;
          memory.used) value=70000 ;;
          driver_version) value=580.1 ;;
          *) value="[N/A]" ;;
        esac
        row="\${row:+$row, }$value"
      done
      echo "$row"
    done ;;
  *) exit 1 ;;
esac
`;

Deno.test("a stranger beside an engine is told from the second look on, and the engine's children never", async () => {
  const root = await Deno.makeTempDir();
  const launcher = new ProcessLauncher({ shim: SHIM, stateDirectory: root });
  const directory = join(root, "run");
  await Deno.mkdir(directory, { mode: 0o700 });
  const engine = await launcher.start({
    name: "server",
    handle: `owned${Deno.pid}`,
    directory,
    argv: ["/bin/sh", "-c", "setsid env -i /bin/sleep 60 & wait"],
    env: { PATH: "/usr/bin:/bin" },
  });
  try {
    const path = `${root}/nvidia-smi`;
    await Deno.writeTextFile(path, NVIDIA_SMI, { mode: 0o755 });
    let now = 0;
    const discovery = createDiscovery({
      sysfsRoot: root,
      nvidiaSmi: path,
      fabrics: [],
      modelDirs: [],
      enginePorts: { first: 20_000, last: 31_999, block: 256 },
      labels: {},
      now: () => now,
      managementAddress: "127.0.0.1",
      heldGpus: () => new Set(["GPU-0", "GPU-1"]),
      strangers: (pids) => strangersAmong({ shim: SHIM, stateDirectory: root }, pids),
    });
    const look = async (apps: readonly string[]) => {
      await Deno.writeTextFile(`${root}/apps`, apps.map((line) => `${line}\n`).join(""));
      now += 60_000;
      const { gpus } = await discovery.live(new AbortController().signal);
      return gpus.flatMap(({ index, problems }) =>
        problems.map(({ reason, detail }) => `${index} ${reason}: ${detail}`)
      );
    };
    const members = await launcher.members(engine);
    ok(members.length >= 2);
    const own = members.map((pid) => `GPU-0, ${pid}, 60000, VLLM::EngineCore`);
    const stranger = "GPU-1, 1, 2048, [Insufficient Permissions]";
    await look(own);
    deepEqual(await look(own), []);
    deepEqual(await look([...own, stranger]), [], "one look could be wrong");
    const [told = "", ...more] = await look([...own, stranger]);
    match(told, /^1 foreign_process: .* pid 1 \(\w.*, 2048 MiB\)/);
    deepEqual(more, []);
    deepEqual(await look([...own, "GPU-1, 999999999, 9, gone"]), [], "it has gone");
  } finally {
    await launcher.signal(engine, "SIGKILL");
    await launcher.childrenEnded();
    await Deno.remove(root, { recursive: true });
  }
});

Deno.test("strangerWatch() says nothing where the driver counts processes otherwise", async () => {
  const root = await Deno.makeTempDir();
  try {
    const shim = join(root, "shim");
    await Deno.mkdir(join(root, "self", "ns"), { recursive: true });
    await Deno.symlink("pid:[4026532999]", join(root, "self", "ns", "pid"));
    const script = `#!/bin/sh\nHEDDLE_SHIM_PROC="${root}" exec "${SHIM}" "$@"\n`;
    await Deno.writeTextFile(shim, script, { mode: 0o755 });
    equal(await strangerWatch({ shim, stateDirectory: root }), undefined);
    await Deno.remove(join(root, "self", "ns", "pid"));
    await Deno.symlink("pid:[4026531836]", join(root, "self", "ns", "pid"));
    const watch = await strangerWatch({ shim, stateDirectory: root });
    deepEqual(await watch?.([4_999_999]), new Map());
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});
