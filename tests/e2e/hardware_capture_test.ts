import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import type { Inventory } from "@heddle/proto/gen/types";
import { inspectHardware } from "../../agent/discovery/inspect.ts";
import { inventoryTable } from "../../agent/core/host/inventory_table.ts";
import type { DiscoveryOptions } from "../../agent/inventory.ts";
import { writeFixtureNode } from "../../tools/fleet/fixture_node.ts";
import type { FixtureNode } from "../../tools/fleet/fixture_spec.ts";

const never = new AbortController().signal;

const NODE: FixtureNode = {
  node: "secret-host",
  driver: "580.65.06",
  gpus: [{
    name: "NVIDIA H100 80GB HBM3",
    count: 4,
    memoryMib: 81559,
    computeCapability: "9.0",
    cells: { "remapped_rows.pending": "Yes" },
  }],
  hcas: [
    { name: "mlx5_0", linkLayer: "InfiniBand", rate: "400 Gb/sec (4X NDR)" },
    { name: "mlx5_1", linkLayer: "InfiniBand", rate: "400 Gb/sec (4X NDR)", state: "2: INIT" },
  ],
  nvlink: "all",
};

async function withNode(use: (dir: string, options: DiscoveryOptions) => Promise<void>) {
  const dir = await Deno.makeTempDir();
  try {
    const written = await writeFixtureNode(dir, NODE);
    await use(dir, {
      ...written,
      fabrics: [{ name: "ib-a", hcas: ["mlx5_0", "mlx5_1"], rateGbps: 400 }],
      modelDirs: [],
      enginePorts: { first: 20_000, last: 20_255, block: 256 },
      labels: {},
      now: () => 0,
      managementAddress: "127.0.0.1",
    });
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

/** What a capture must preserve: everything but identifiers and the machine it is read on. */
function essence({ gpus, hcas, fabrics, problems, driverVersion, arch }: Inventory): unknown {
  return {
    gpus: gpus.map((gpu) => ({ ...gpu, uuid: "" })),
    hcas,
    fabrics,
    problems,
    driverVersion,
    arch,
  };
}

function jsonOf(value: unknown): string {
  return JSON.stringify(value, (_, each) => typeof each === "bigint" ? `${each}` : each, 1);
}

Deno.test("a capture gives the same inventory anywhere, and names nobody", async () => {
  await withNode(async (dir, options) => {
    const capture = `${dir}/capture`;
    const kernelLog = `${dir}/kmsg`;
    const fault = "pid=4242, name=secret-program, GPU has fallen off the bus.";
    await Deno.writeTextFile(kernelLog, `6,1,2,-;NVRM: Xid (PCI:0000:2a:00): 79, ${fault}\n`);
    const discovery = { ...options, kernelLog };
    const seen = await inspectHardware({ discovery, capture }, never);
    const elsewhere = { ...options, sysfsRoot: "/nowhere", nvidiaSmi: undefined };
    const replayed = await inspectHardware({ discovery: elsewhere, replay: capture }, never);
    const [, lost] = replayed.gpus;
    equal(
      lost?.problems.find(({ reason }) => reason === "xid_fatal")?.detail.includes("Xid 79"),
      true,
    );
    const words = (text: string) => text.replace(fault, "").replace(/pid=masked.*bus\./, "");
    deepEqual(words(jsonOf(essence(replayed))), words(jsonOf(essence(seen))));
    equal(replayed.gpus.length, 4);
    equal(new Set(replayed.gpus.map((gpu) => gpu.uuid)).size, 4);
    const texts = await Promise.all(
      ["sysfs.tsv", "nvidia_smi.json", "host.json", "kernel_log.txt"].map((file) =>
        Deno.readTextFile(`${capture}/${file}`)
      ),
    );
    for (
      const secret of [
        "secret-host",
        "secret-program",
        "4242",
        Deno.hostname(),
        ...seen.gpus.map((gpu) => gpu.uuid),
      ]
    ) {
      ok(texts.every((text) => !text.includes(secret)), secret);
    }
  });
});

Deno.test("a folder that is no capture is refused with its name", async () => {
  await withNode(async (dir, options) => {
    await rejects(
      inspectHardware({ discovery: options, replay: `${dir}/none` }, never),
      /Cannot read the capture: .*host\.json/,
    );
    await Deno.mkdir(`${dir}/bad`);
    await Deno.writeTextFile(`${dir}/bad/host.json`, '{"version":99}');
    await rejects(
      inspectHardware({ discovery: options, replay: `${dir}/bad` }, never),
      /host\.json is no such file/,
    );
  });
});

Deno.test("inventoryTable() shows each GPU and port, and says what to do about problems", async () => {
  await withNode(async (_, options) => {
    const text = inventoryTable(await inspectHardware({ discovery: options }, never));
    match(
      text,
      /\n +0 +h100-80g +NVIDIA H100 80GB HBM3 +81559 +9\.0 +0 +0 +0000:18:00 +16 +mlx5_0 PIX +row_remap/,
    );
    match(
      text,
      /\n +mlx5_1 +1 +InfiniBand +no +400 Gb\/s +0 +0000:11:00 +- +ib-a +no_subnet_manager/,
    );
    match(text, /\n +ib-a +400 Gb\/s +degraded +mlx5_0\n/);
    match(text, /GPU 3 row_remap_pending: .*\n +→ Drain the node/);
  });
});
