/**
 * Describes a GPU node on disk, so that an agent on a laptop discovers it: a sysfs tree and an
 * `nvidia-smi` that answers like the real one. The hardware is described, not there; the script
 * says so itself. Engines on such a node are simulated.
 */

import {
  digitsOf,
  type FixtureGpu,
  type FixtureGpus,
  type FixtureNode,
  hex,
} from "./fixture_spec.ts";
import { nvidiaSmiScript } from "./fixture_nvidia_smi.ts";
import { writeSysfs } from "./fixture_sysfs.ts";

export interface WrittenNode {
  /** For the agent's `sysfs_root`. */
  readonly sysfsRoot: string;
  /** For the agent's `nvidia_smi`; undefined for a node without GPUs. */
  readonly nvidiaSmi: string | undefined;
  /** What /dev/infiniband would hold; undefined for a node whose adapters have no device files. */
  readonly rdmaDevices: string | undefined;
}

/** Buses of an eight-GPU server; further GPUs follow in domain 1. */
const GPU_BUSES: readonly number[] = [0x18, 0x2a, 0x3a, 0x5d, 0x9a, 0xab, 0xba, 0xdb];

/** Writes the node below `dir`, replacing what an earlier call wrote there. */
export async function writeFixtureNode(dir: string, spec: FixtureNode): Promise<WrittenNode> {
  const node = spec.node ?? dir.split("/").findLast((part) => part !== "") ?? "node";
  const gpus = describeGpus(node, spec.gpus);
  const sysfsRoot = `${dir}/sys`;
  await Deno.mkdir(dir, { recursive: true });
  await removeIfPresent(sysfsRoot);
  const { hcas, nvswitches = 0, acsRedirects = false } = spec;
  const verbs = hcas.length > 0 && spec.rdmaDevices !== "none";
  await writeSysfs(sysfsRoot, { node, gpus, hcas, nvswitches, acsRedirects, verbs });
  const rdmaDevices = `${dir}/dev-infiniband`;
  await removeIfPresent(rdmaDevices);
  if (verbs) await writeRdmaDevices(rdmaDevices, spec);
  const devices = verbs ? rdmaDevices : undefined;
  const nvidiaSmi = `${dir}/nvidia-smi`;
  await removeIfPresent(nvidiaSmi);
  if (gpus.length === 0) {
    return { sysfsRoot, nvidiaSmi: undefined, rdmaDevices: devices };
  }
  await Deno.writeTextFile(nvidiaSmi, nvidiaSmiScript(spec, gpus), { mode: 0o755 });
  return { sysfsRoot, nvidiaSmi, rdmaDevices: devices };
}

/** Plain files with the names and modes of the real ones: nothing here opens them. */
async function writeRdmaDevices(folder: string, spec: FixtureNode): Promise<void> {
  await Deno.mkdir(folder, { recursive: true });
  for (const name of ["rdma_cm", ...spec.hcas.map((_, at) => `uverbs${at}`)]) {
    await Deno.writeTextFile(`${folder}/${name}`, "");
    await Deno.chmod(`${folder}/${name}`, spec.rdmaDevices === "closed" ? 0o600 : 0o666);
  }
}

function describeGpus(node: string, groups: readonly FixtureGpus[]): FixtureGpu[] {
  const all = groups.flatMap((group) => Array<FixtureGpus>(group.count).fill(group));
  return all.map((group, index) => {
    const bus = GPU_BUSES[index % GPU_BUSES.length] ?? 0;
    const domain = Math.floor(index / GPU_BUSES.length);
    return {
      index,
      uuid: `GPU-${uuidOf(`${node}/gpu${index}`)}`,
      pciFunction: `${hex(domain, 4)}:${hex(bus, 2)}:00.0`,
      // Two sockets, each with half of the GPUs, as in most servers with more than one.
      numaNode: index < all.length / 2 ? 0 : 1,
      group,
    };
  });
}

async function removeIfPresent(path: string): Promise<void> {
  try {
    await Deno.remove(path, { recursive: true });
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

function uuidOf(text: string): string {
  const digits = digitsOf(text, 32);
  return [[0, 8], [8, 12], [12, 16], [16, 20], [20, 32]]
    .map(([from, to]) => digits.slice(from, to)).join("-");
}
