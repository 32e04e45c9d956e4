import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import type { Inventory } from "@heddle/proto/gen/types";
import { inspectHardware } from "../../agent/discovery/inspect.ts";
import { inventoryTable } from "../../agent/core/host/inventory_table.ts";
import { RecordingSource } from "../../agent/discovery/hardware_capture.ts";
import { machineSource } from "../../agent/discovery/hardware_source.ts";
import { createDiscoveryOf, type DiscoveryOptions } from "../../agent/inventory.ts";
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

/** A machine that has none of it. */
const ELSEWHERE: DiscoveryOptions = {
  sysfsRoot: "/nowhere",
  nvidiaSmi: undefined,
  fabrics: [],
  modelDirs: [],
  enginePorts: { first: 20_000, last: 20_255, block: 256 },
  labels: {},
  now: () => 0,
  managementAddress: "127.0.0.1",
};

async function withNode(
  use: (dir: string, options: DiscoveryOptions) => Promise<void>,
  node: FixtureNode = NODE,
) {
  const dir = await Deno.makeTempDir();
  try {
    const written = await writeFixtureNode(dir, node);
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
function essence(inventory: Inventory): unknown {
  const { gpus, hcas, fabrics, problems, driverVersion, arch, managementInterface } = inventory;
  return {
    managementInterface,
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

/** A port whose GID table holds an address that was its interface's once, before the one it has. */
async function writeRocePort(sysfsRoot: string): Promise<void> {
  const port = `${sysfsRoot}/class/infiniband/mlx5_2/ports/1`;
  const table: readonly (readonly [gid: string, type: string])[] = [
    ["fe80:0000:0000:0000:5054:00ff:fe12:3456", "IB/RoCE v1"],
    ["fe80:0000:0000:0000:5054:00ff:fe12:3456", "RoCE v2"],
    ["0000:0000:0000:0000:0000:ffff:0a14:0105", "RoCE v2"],
    ["0000:0000:0000:0000:0000:ffff:0a14:0107", "IB/RoCE v1"],
    ["0000:0000:0000:0000:0000:ffff:0a14:0107", "RoCE v2"],
  ];
  for (const folder of ["gids", "gid_attrs/types", "gid_attrs/ndevs"]) {
    await Deno.remove(`${port}/${folder}`, { recursive: true }).catch(() => {});
    await Deno.mkdir(`${port}/${folder}`, { recursive: true });
  }
  for (const [index, [gid, type]] of table.entries()) {
    await Deno.writeTextFile(`${port}/gids/${index}`, `${gid}\n`);
    await Deno.writeTextFile(`${port}/gid_attrs/types/${index}`, `${type}\n`);
    await Deno.writeTextFile(`${port}/gid_attrs/ndevs/${index}`, "ens9\n");
  }
}

Deno.test("a capture has what chooses a RoCE port's GID, and the fabrics, with addresses masked", async () => {
  const roce = { name: "mlx5_2", linkLayer: "Ethernet", rate: "400 Gb/sec (4X NDR)" } as const;
  await withNode(async (dir, options) => {
    await writeRocePort(options.sysfsRoot);
    const machine = machineSource(options.sysfsRoot, options.nvidiaSmi);
    const interfaces = [
      { name: "lo", address: "127.0.0.1", netmask: "255.0.0.0" },
      { name: "ens3", address: "10.9.8.7", netmask: "255.255.255.0" },
      { name: "ens3", address: "fe80::5054:ff:fe12:3456", netmask: "ffff:ffff:ffff:ffff::" },
      { name: "ens9", address: "10.20.1.7", netmask: "255.255.255.0" },
    ];
    const source = new RecordingSource({
      ...machine,
      host: () => ({ ...machine.host(), interfaces, problems: [] }),
    });
    for (const managementAddress of ["10.9.8.7", "203.0.113.9"]) {
      const discovery = {
        ...options,
        fabrics: [{ name: "roce-a", hcas: ["mlx5_2"], linkLayer: "ethernet" as const }],
        managementAddress,
      };
      const looked = createDiscoveryOf(source, discovery);
      const seen = await looked.inventory(never);
      const capture = `${dir}/capture-${managementAddress}`;
      await source.write(capture, looked.kernelFaults(), discovery);
      const replayed = await inspectHardware({ discovery: ELSEWHERE, replay: capture }, never);
      equal(seen.hcas.find(({ name }) => name === "mlx5_2")?.roceGidIndex, 4);
      deepEqual(replayed.hcas, seen.hcas);
      deepEqual(replayed.fabrics, seen.fabrics);
      equal(replayed.managementInterface, managementAddress === "10.9.8.7" ? "ens3" : "");
      const reasons = ({ problems }: Inventory) => problems.map(({ reason }) => reason);
      deepEqual(reasons(replayed), reasons(seen));
      const files = await Promise.all(
        ["sysfs.tsv", "host.json"].map((file) => Deno.readTextFile(`${capture}/${file}`)),
      );
      const secrets = ["10.9.8.7", "10.20.1.7", "203.0.113.9", "0a14:01", "5054:ff"];
      for (const secret of secrets) ok(files.every((text) => !text.includes(secret)), secret);
    }
  }, { ...NODE, hcas: [...NODE.hcas, roce] });
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
