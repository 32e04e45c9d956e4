/** The part of sysfs that discovery reads, laid out with its links as the kernel does. */

import { digitsOf, type FixtureGpu, type FixtureHca, hex } from "./fixture_spec.ts";

export interface SysfsSpec {
  readonly node: string;
  readonly gpus: readonly FixtureGpu[];
  readonly hcas: readonly FixtureHca[];
  readonly nvswitches: number;
  readonly acsRedirects: boolean;
  /** Whether the kernel has given the adapters their device files. */
  readonly verbs: boolean;
}

/** Above the first GPU, where there is to be one. */
const BRIDGE = "0000:17:00.0";

const NVSWITCH_BUS = 0xc0;

/** An x86 CPU with AVX2 (feature 0125), in the form the kernel prints it, cut short. */
const CPU_MODALIAS = "cpu:type:x86,ven0000fam0006mod008F:feature:," +
  Array.from({ length: 0x130 }, (_, feature) => hex(feature, 4).toUpperCase()).join(",");

/** Writes the tree below `root`. */
export async function writeSysfs(root: string, spec: SysfsSpec): Promise<void> {
  await writeFiles(`${root}/devices/system/cpu`, { modalias: CPU_MODALIAS });
  await Deno.mkdir(`${root}/bus/pci/devices`, { recursive: true });
  for (const gpu of spec.gpus) {
    const bridge = spec.acsRedirects && gpu.index === 0 ? `/${BRIDGE}` : "";
    await writeGpu(root, gpu, `devices/pci${gpu.pciFunction.slice(0, 4)}:00${bridge}`);
  }
  if (spec.acsRedirects) await writeBridge(root);
  for (let at = 0; at < spec.nvswitches; at++) await writeNvswitch(root, at);
  // Without adapters the class directory is not there, as on a node without an RDMA driver.
  if (spec.hcas.length > 0) await Deno.mkdir(`${root}/class/infiniband`, { recursive: true });
  for (const [at, hca] of spec.hcas.entries()) await writeHca(root, spec, hca, at);
}

async function writeBridge(root: string): Promise<void> {
  const folder = `devices/pci0000:00/${BRIDGE}`;
  await writeFiles(`${root}/${folder}`, { vendor: "0x104c", class: "0x060400" });
  // The one extended capability is Access Control Services, with request redirection on.
  const config = new DataView(new ArrayBuffer(4_096));
  config.setUint32(0x100, 0x0001_000d, true);
  config.setUint16(0x106, 0x001d, true);
  await Deno.writeFile(`${root}/${folder}/config`, new Uint8Array(config.buffer));
  await linkFromBus(root, BRIDGE, folder);
}

async function writeNvswitch(root: string, at: number): Promise<void> {
  const pciFunction = `0000:${hex(NVSWITCH_BUS + at, 2)}:00.0`;
  const folder = `devices/pci0000:00/${pciFunction}`;
  await writeFiles(`${root}/${folder}`, { vendor: "0x10de", class: "0x068000" });
  await linkFromBus(root, pciFunction, folder);
}

/** `above` is the folder of the bridge or root that it hangs on. */
async function writeGpu(root: string, gpu: FixtureGpu, above: string): Promise<void> {
  const folder = `${root}/${above}/${gpu.pciFunction}`;
  await writeFiles(folder, {
    vendor: "0x10de",
    class: "0x030200",
    numa_node: String(gpu.numaNode),
  });
  await Deno.mkdir(`${root}/bus/pci/drivers/nvidia`, { recursive: true });
  const up = above.split("/").map(() => "..").join("/");
  await Deno.symlink(`${up}/../bus/pci/drivers/nvidia`, `${folder}/driver`);
  await linkFromBus(root, gpu.pciFunction, `${above}/${gpu.pciFunction}`);
}

async function writeHca(
  root: string,
  spec: SysfsSpec,
  hca: FixtureHca,
  at: number,
): Promise<void> {
  // Each sits one bus above the GPU it goes with, as on the servers' PCIe switches.
  const near = spec.gpus[at % Math.max(1, spec.gpus.length)];
  const pciFunction = `0000:${hex(0x10 + at, 2)}:00.0`;
  const place = `devices/pci0000:00/${pciFunction}`;
  const folder = `${root}/${place}`;
  const guid = (digitsOf(`${spec.node}/${hca.name}`, 16).match(/.{4}/g) ?? []).join(":");
  await writeFiles(folder, {
    vendor: "0x15b3",
    class: hca.linkLayer === "InfiniBand" ? "0x020700" : "0x020000",
    numa_node: String(near?.numaNode ?? 0),
  });
  await linkFromBus(root, pciFunction, place);
  if (spec.verbs) {
    await writeFiles(`${root}/class/infiniband_verbs/uverbs${at}`, { ibdev: hca.name });
  }
  const device = `${folder}/infiniband/${hca.name}`;
  await writeFiles(device, {
    node_type: "1: CA",
    node_desc: `${spec.node} ${hca.name}`,
    node_guid: guid,
    sys_image_guid: guid,
    hca_type: "MT4129",
    fw_ver: "28.43.1014",
  });
  await Deno.symlink("../..", `${device}/device`);
  const state = hca.state ?? "4: ACTIVE";
  const port = `${device}/ports/1`;
  await writeFiles(port, {
    state,
    phys_state: state.startsWith("1:") ? "2: Polling" : "5: LinkUp",
    link_layer: hca.linkLayer,
    rate: hca.rate,
    lid: hca.linkLayer === "InfiniBand" ? `0x${hex(at + 2, 1)}` : "0x0",
    sm_lid: hca.linkLayer === "InfiniBand" ? "0x1" : "0x0",
  });
  await writeFiles(`${port}/gids`, { "0": `fe80:0000:0000:0000:${guid}` });
  await writeFiles(`${port}/gid_attrs/types`, {
    "0": hca.linkLayer === "InfiniBand" ? "IB/RoCE v1" : "RoCE v2",
  });
  await writeFiles(`${port}/counters`, { link_downed: "0", port_xmit_data: "0" });
  await Deno.symlink(
    `../../devices/pci0000:00/${pciFunction}/infiniband/${hca.name}`,
    `${root}/class/infiniband/${hca.name}`,
  );
}

/** `place` is where the device itself lies, below the root. */
async function linkFromBus(root: string, pciFunction: string, place: string): Promise<void> {
  await Deno.symlink(`../../../${place}`, `${root}/bus/pci/devices/${pciFunction}`);
}

async function writeFiles(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  await Deno.mkdir(folder, { recursive: true });
  for (const [name, text] of Object.entries(files)) {
    await Deno.writeTextFile(`${folder}/${name}`, `${text}\n`);
  }
}
