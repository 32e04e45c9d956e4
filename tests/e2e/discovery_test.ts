import { deepEqual, equal, ok } from "node:assert/strict";
import { judgeLinks } from "../../agent/core/health/link_fault.ts";
import { LinkLayer } from "@heddle/proto/gen/types";
import { writeFixtureNode } from "../../tools/fleet/fixture_node.ts";
import type { FixtureNode } from "../../tools/fleet/fixture_spec.ts";
import {
  createDiscovery,
  type Discovery,
  DISCOVERY_LIMITS,
  type DiscoveryLimits,
  type DiscoveryOptions,
} from "../../agent/inventory.ts";

const never = new AbortController().signal;

const H100_NODE: FixtureNode = {
  node: "h100-1",
  driver: "595.10",
  gpus: [{
    name: "NVIDIA H100 80GB HBM3",
    count: 8,
    memoryMib: 81559,
    computeCapability: "9.0",
  }],
  hcas: [
    { name: "mlx5_0", linkLayer: "InfiniBand", rate: "400 Gb/sec (4X NDR)" },
    { name: "mlx5_1", linkLayer: "InfiniBand", rate: "400 Gb/sec (4X NDR)" },
  ],
  nvlink: "all",
};

interface Bench {
  readonly dir: string;
  readonly discovery: Discovery;
  /** Moves discovery's clock, in ms. */
  advance(ms: number): void;
}

/** A node described on disk with discovery on it, removed afterwards. */
async function withNode(
  spec: FixtureNode,
  use: (bench: Bench) => Promise<void>,
  over: { options?: Partial<DiscoveryOptions>; limits?: Partial<DiscoveryLimits> } = {},
): Promise<void> {
  const dir = await Deno.makeTempDir();
  try {
    const written = await writeFixtureNode(dir, spec);
    await Deno.mkdir(`${dir}/models`);
    let nowMs = 0;
    const discovery = createDiscovery({
      ...written,
      fabrics: [{ name: "ib-a", hcas: ["mlx5_0", "mlx5_1"], linkLayer: "infiniband" }],
      modelDirs: [`${dir}/models`],
      enginePorts: { first: 20_000, last: 31_999, block: 256 },
      labels: { rack: "r1" },
      now: () => nowMs,
      managementAddress: "127.0.0.1",
      ...over.options,
    }, { ...DISCOVERY_LIMITS, ...over.limits });
    await use({ dir, discovery, advance: (ms) => nowMs += ms });
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

Deno.test("inventory() tells all of a node with eight H100 on InfiniBand", async () => {
  await withNode(H100_NODE, async ({ dir, discovery }) => {
    await Deno.writeFile(`${dir}/models/tiny.gguf`, new Uint8Array(5));
    const inventory = await discovery.inventory(never);
    deepEqual(inventory.problems, []);
    deepEqual(inventory.gpus.map((gpu) => `${gpu.index} ${gpu.gpuClass} ${gpu.nvlinkClique}`), [
      ...[0, 1, 2, 3, 4, 5, 6, 7].map((index) => `${index} h100-80g 0`),
    ]);
    const gpu = inventory.gpus[5];
    ok(gpu?.uuid.startsWith("GPU-"));
    deepEqual(
      [gpu?.pciBusId, gpu?.memoryTotalMib, gpu?.computeCapability, gpu?.numaNode],
      ["0000:ab:00", 81559, "9.0", 1],
    );
    equal(inventory.driverVersion, "595.10");
    deepEqual(inventory.hcas.map((hca) => [hca.name, hca.linkLayer, hca.active, hca.fabric]), [
      ["mlx5_0", LinkLayer.INFINIBAND, true, "ib-a"],
      ["mlx5_1", LinkLayer.INFINIBAND, true, "ib-a"],
    ]);
    const [fabric] = inventory.fabrics;
    deepEqual([fabric?.name, fabric?.rateGbps, fabric?.degraded, fabric?.hcas], [
      "ib-a",
      400,
      false,
      ["mlx5_0", "mlx5_1"],
    ]);
    ok((inventory.modelDirs[0]?.freeBytes ?? 0n) > 0n);
    deepEqual(inventory.modelFiles.map((file) => [file.path, file.sizeBytes]), [
      [`${dir}/models/tiny.gguf`, 5n],
    ]);
    equal(inventory.modelFilesPresent, true);
    equal(inventory.managementInterface, "lo");
    ok(inventory.hostname !== "" && inventory.cpuCount > 0 && (inventory.memoryBytes ?? 0n) > 0n);
    deepEqual([inventory.enginePortFirst, inventory.enginePortBlock], [20_000, 256]);
    equal(inventory.labels["rack"], "r1");
    equal(inventory.enginesProbed, false);
  });
});

Deno.test("inventory() tells what is near a GPU, and the NVLink domain beyond its node", async () => {
  const cluster = "7AB3C4D5-0000-0000-0000-000000000001";
  const rack: FixtureNode = {
    ...H100_NODE,
    gpus: H100_NODE.gpus.map((group) => ({
      ...group,
      count: 4,
      cells: {
        "fabric.clusterUuid": cluster,
        "fabric.cliqueId": "2",
        "pcie.link.width.current": "8",
      },
    })),
  };
  await withNode(rack, async ({ discovery }) => {
    const { gpus: [gpu], hcas: [hca], problems } = await discovery.inventory(never);
    equal(gpu?.nvlinkDomain, `${cluster.toLowerCase()}/2`);
    deepEqual(gpu?.place?.hcas.map(({ name, distance }) => `${name} ${distance}`), [
      "mlx5_0 PIX",
      "mlx5_1 NODE",
    ]);
    deepEqual([gpu?.place?.pcieWidth, gpu?.place?.pcieWidthMax], [8, 16]);
    deepEqual(problems.map(({ reason }) => reason), ["gpu_pcie_narrow"]);
    equal(hca?.pciBusId, "0000:10:00");
  });
  // One GPU alone has no matrix: sysfs knows where it is.
  const alone = { ...rack, gpus: rack.gpus.map((group) => ({ ...group, count: 1, cells: {} })) };
  await withNode(alone, async ({ discovery }) => {
    const { gpus: [gpu] } = await discovery.inventory(never);
    deepEqual(gpu?.place?.hcas.map(({ name, distance }) => `${name} ${distance}`), [
      "mlx5_0 PHB",
      "mlx5_1 PHB",
    ]);
    equal(gpu?.nvlinkDomain, undefined, "of all zeros is none");
  });
});

Deno.test("inventory() of a machine with nothing says what is missing and what to do", async () => {
  await withNode({ driver: "", gpus: [], hcas: [], nvlink: "none" }, async ({ discovery }) => {
    const inventory = await discovery.inventory(never);
    deepEqual(inventory.gpus, []);
    deepEqual(inventory.problems.map((problem) => problem.reason), [
      "nvidia_smi_missing",
      "sysfs_missing",
    ]);
    ok(inventory.problems.every((problem) => problem.detail !== "" && problem.remedy !== ""));
    ok(inventory.hostname !== "");
  }, { options: { sysfsRoot: "/nowhere", fabrics: [] } });
});

Deno.test("inventory() survives a sysfs that Deno refuses to read", async () => {
  // The set of the tests reads everything but this: Deno guards /sys itself.
  await withNode(H100_NODE, async ({ discovery }) => {
    const { problems, fabrics, gpus } = await discovery.inventory(never);
    equal(gpus.length, 8);
    deepEqual(fabrics, []);
    deepEqual(problems.map((problem) => problem.reason), ["sysfs_denied", "fabric_unusable"]);
  }, { options: { sysfsRoot: "/sys" } });
});

Deno.test("inventory() finds pairs, mixed cards, and no links where there are none", async () => {
  const cards = (nvlink: FixtureNode["nvlink"]): FixtureNode => ({
    ...H100_NODE,
    gpus: [
      { name: "NVIDIA RTX A6000", count: 4, memoryMib: 49140, computeCapability: "8.6" },
      { name: "NVIDIA L4", count: 1, memoryMib: 23034, computeCapability: "8.9" },
    ],
    nvlink,
  });
  const cliques = async (nvlink: FixtureNode["nvlink"]): Promise<unknown[]> => {
    let found: unknown[] = [];
    await withNode(cards(nvlink), async ({ discovery }) => {
      const { gpus } = await discovery.inventory(never);
      found = gpus.map((gpu) => gpu.nvlinkClique);
      equal(gpus[4]?.gpuClass, "l4-24g");
    });
    return found;
  };
  deepEqual(await cliques("pairs"), [0, 0, 1, 1, undefined]);
  deepEqual(await cliques("none"), Array(5).fill(undefined));
});

Deno.test("links() tells a GPU that lost an NVLink, and a port that is down, of those who use them", async () => {
  await withNode(H100_NODE, async ({ dir, discovery, advance }) => {
    const { gpus } = await discovery.inventory(never);
    const user = {
      gpus: gpus.slice(4).map(({ index, uuid }) => ({ index, uuid })),
      hcas: [{ name: "mlx5_1", port: 1 }],
    };
    const others = { gpus: gpus.slice(0, 4).map(({ index, uuid }) => ({ index, uuid })), hcas: [] };
    equal(judgeLinks(user, discovery.links()).kind, "well");
    const script = await Deno.readTextFile(`${dir}/nvidia-smi`);
    const [before = "", after = ""] = script.split(
      `(UUID: ${user.gpus[1]?.uuid})\n\t Link 0: 26.562 GB/s`,
    );
    const lossy = `${before}(UUID: ${user.gpus[1]?.uuid})\n\t Link 0: <inactive>${after}`;
    await Deno.writeTextFile(`${dir}/nvidia-smi`, lossy);
    advance(61_000);
    const live = await discovery.live(never);
    deepEqual(live.problems.map((problem) => problem.reason), ["nvlink_inactive"]);
    const lost = judgeLinks(user, discovery.links());
    ok(lost.kind === "fault" && /GPU 5 has 17 of its 18 NVLinks/.test(lost.message), lost.kind);
    equal(judgeLinks(others, discovery.links()).kind, "well");
    // A driver that hangs says nothing: what was known stays known.
    await Deno.writeTextFile(`${dir}/nvidia-smi`, lossy.replace("#!/bin/sh", "#!/bin/sh\nexit 9"));
    advance(61_000);
    await discovery.live(never);
    equal(judgeLinks(user, discovery.links()).kind, "unknown");
    await Deno.writeTextFile(`${dir}/nvidia-smi`, script);
    const port = `${dir}/sys/class/infiniband/mlx5_1/ports/1`;
    await Deno.writeTextFile(`${port}/state`, "1: DOWN\n");
    advance(61_000);
    await discovery.live(never);
    const down = judgeLinks(user, discovery.links());
    equal(down.kind === "fault" && down.reason, "hca_link_down");
    await Deno.writeTextFile(`${port}/state`, "4: ACTIVE\n");
    await discovery.live(never);
    equal(judgeLinks(user, discovery.links()).kind, "well");
  });
});

Deno.test("live() tells a port that went down, and the fabric that lost it", async () => {
  await withNode(H100_NODE, async ({ dir, discovery }) => {
    await discovery.inventory(never);
    const port = `${dir}/sys/class/infiniband/mlx5_1/ports/1`;
    await Deno.writeTextFile(`${port}/state`, "1: DOWN\n");
    const live = await discovery.live(never);
    deepEqual(live.fabrics.map((fabric) => [fabric.degraded, fabric.hcas]), [[true, ["mlx5_0"]]]);
    deepEqual(live.problems.map((problem) => problem.reason), ["fabric_degraded"]);
    await Deno.writeTextFile(`${port}/state`, "4: ACTIVE\n");
    equal((await discovery.live(never)).fabrics[0]?.degraded, false);
  });
});

Deno.test("live() gives the list of files only when it changed", async () => {
  await withNode(H100_NODE, async ({ dir, discovery, advance }) => {
    await discovery.inventory(never);
    equal((await discovery.live(never)).modelFiles, undefined);
    await Deno.writeFile(`${dir}/models/new.gguf`, new Uint8Array(3));
    advance(60_000);
    deepEqual((await discovery.live(never)).modelFiles?.map((file) => file.sizeBytes), [3n]);
    equal((await discovery.live(never)).modelFiles, undefined);
    await Deno.remove(`${dir}/models/new.gguf`);
    advance(60_000);
    deepEqual((await discovery.live(never)).modelFiles, []);
  });
});

Deno.test("live() reports a GPU that fell off, with its class, and never as usable", async () => {
  await withNode(H100_NODE, async ({ dir, discovery, advance }) => {
    const { gpus } = await discovery.inventory(never);
    const seven = { ...H100_NODE, gpus: H100_NODE.gpus.map((each) => ({ ...each, count: 7 })) };
    await writeFixtureNode(dir, seven);
    advance(60_000);
    const live = await discovery.live(never);
    equal(live.gpus.length, 8);
    equal(live.gpus[7]?.uuid, gpus[7]?.uuid);
    equal(live.gpus[7]?.gpuClass, "h100-80g");
    deepEqual(live.gpus.flatMap((gpu) => gpu.problems.map((problem) => problem.reason)), [
      "gpu_lost",
    ]);
  });
});

Deno.test("inventory() asks an old driver without the fields it refuses", async () => {
  await withNode(H100_NODE, async ({ dir, discovery }) => {
    // A driver that has no list of fields and does not know compute_cap.
    const path = `${dir}/nvidia-smi`;
    const script = await Deno.readTextFile(path);
    await Deno.remove(path);
    await Deno.writeTextFile(
      path,
      script.replace(/^ *\*\/compute_cap\).*\n/m, "").replace(/^--help-query-gpu\)/m, "--none)"),
      { mode: 0o755 },
    );
    const { gpus, problems } = await discovery.inventory(never);
    equal(gpus.length, 8);
    equal(gpus[0]?.computeCapability, undefined);
    deepEqual([gpus[0]?.problems, problems], [[], []]);
  });
});

Deno.test("inventory() goes on without a driver that hangs, and is well when it answers", async () => {
  await withNode(H100_NODE, async ({ dir, discovery, advance }) => {
    await discovery.inventory(never);
    const path = `${dir}/nvidia-smi`;
    const script = await Deno.readTextFile(path);
    const replace = async (text: string): Promise<void> => {
      await Deno.remove(path);
      await Deno.writeTextFile(path, text, { mode: 0o755 });
    };
    await replace("#!/bin/sh\nexec sleep 30\n");
    advance(60_000);
    const hung = await discovery.inventory(never);
    equal(hung.gpus.length, 8);
    ok(hung.gpus.every((gpu) => gpu.problems[0]?.reason === "driver_hung"));
    deepEqual(hung.problems.map((problem) => problem.reason), ["driver_hung"]);
    await replace(script);
    // The killed call needs a moment to end; until then no other is started.
    let after = await discovery.inventory(never);
    for (let round = 0; round < 50 && after.problems.length > 0; round += 1) {
      after = await discovery.inventory(never);
    }
    deepEqual(after.problems, []);
    ok(after.gpus.every((gpu) => gpu.problems.length === 0));
  }, { limits: { queryDeadlineMs: 1_500 } });
});

Deno.test("live() does not wait for a driver that takes its time, and tells when it is there", async () => {
  await withNode(H100_NODE, async ({ dir, discovery }) => {
    const path = `${dir}/nvidia-smi`;
    const script = await Deno.readTextFile(path);
    await Deno.remove(path);
    await Deno.writeTextFile(
      path,
      script.replace("set -f", `while [ ! -e ${dir}/go ]; do sleep 0.02; done\nset -f`),
      { mode: 0o755 },
    );
    const live = await discovery.live(never);
    deepEqual(live.gpus, []);
    deepEqual(live.problems.map((problem) => problem.reason), ["driver_hung"]);
    equal(live.fabrics.length, 1);
    await Deno.writeTextFile(`${dir}/go`, "");
    equal((await discovery.inventory(never)).gpus.length, 8);
  }, { limits: { liveWaitMs: 50 } });
});

Deno.test("inventory() keeps a GPU out on which a foreign process computes", async () => {
  const held = new Set<string>();
  await withNode(H100_NODE, async ({ dir, discovery, advance }) => {
    const { gpus } = await discovery.inventory(never);
    const [first, second] = gpus;
    held.add(second?.uuid ?? "");
    const path = `${dir}/nvidia-smi`;
    const script = await Deno.readTextFile(path);
    await Deno.remove(path);
    const rows = [first, second].map((gpu) => `${gpu?.uuid}, 77, 900, /usr/bin/python3`);
    await Deno.writeTextFile(
      path,
      script.replace(
        'if [ "$header" = yes ]; then printf \'%s\\n\' "$apps"; fi',
        `printf '%s\\n' '${rows.join("' '")}'`,
      ),
      { mode: 0o755 },
    );
    advance(60_000);
    const live = await discovery.live(never);
    deepEqual(
      live.gpus.flatMap((gpu) => gpu.problems.map((each) => `${gpu.index} ${each.reason}`)),
      ["0 foreign_process"],
    );
  }, { options: { heldGpus: () => held } });
});

Deno.test("inventory() keeps a GPU out whose fault only the kernel tells", async () => {
  const kernelLog = await Deno.makeTempFile();
  try {
    await Deno.writeTextFile(
      kernelLog,
      "4,9,1,-;NVRM: Xid (PCI:0000:2a:00): 95, pid=7, uncontained ECC error\n",
    );
    await withNode(H100_NODE, async ({ discovery }) => {
      const { gpus } = await discovery.inventory(never);
      deepEqual(
        gpus.flatMap((gpu) => gpu.problems.map((each) => `${gpu.index} ${each.reason}`)),
        ["1 xid_fatal"],
      );
    }, { options: { kernelLog } });
  } finally {
    await Deno.remove(kernelLog);
  }
});

Deno.test("live() tells of a link that went down and came back between two looks", async () => {
  await withNode(H100_NODE, async ({ dir, discovery, advance }) => {
    await discovery.inventory(never);
    const counters = `${dir}/sys/class/infiniband/mlx5_1/ports/1/counters`;
    await Deno.writeTextFile(`${counters}/link_downed`, "2\n");
    advance(30_000);
    const live = await discovery.live(never);
    deepEqual(live.problems.map((problem) => problem.reason), ["hca_link_unstable"]);
    ok(live.problems[0]?.detail.includes("mlx5_1 port 1: link_downed +2"));
    equal(live.fabrics[0]?.degraded, false);
    advance(600_000);
    deepEqual((await discovery.live(never)).problems, []);
  });
});
