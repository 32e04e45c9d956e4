/**
 * Described GPUs and adapters for a node: its /sys shows them, so that the agent's unit finds them
 * through the same bind mount as on real hardware, and its nvidia-smi tells of them.
 */
import { join } from "node:path";
import { writeFixtureNode } from "../../../tools/fleet/fixture_node.ts";
import type { FixtureNode } from "../../../tools/fleet/fixture_spec.ts";
import type { Bind } from "../node.ts";

/**
 * Folders of sysfs that the description replaces whole: links between them stay inside of it. The
 * rest, control groups among it, stays the node's own.
 */
const REPLACED = ["bus", "class", "devices"];

/** Writes the description to `folder` and returns what the node has to see of it. */
export async function describeHardware(folder: string, spec: FixtureNode): Promise<Bind[]> {
  const { sysfsRoot, nvidiaSmi, rdmaDevices } = await writeFixtureNode(folder, spec);
  const binds: Bind[] = [];
  for (const name of REPLACED) {
    const from = join(sysfsRoot, name);
    // A node without adapters has no class of them.
    await Deno.mkdir(from, { recursive: true });
    binds.push({ from, to: `/sys/${name}` });
  }
  // What is read only nobody may write, whatever its mode says.
  if (rdmaDevices !== undefined) {
    binds.push({ from: rdmaDevices, to: "/dev/infiniband", writable: true });
  }
  if (nvidiaSmi !== undefined) binds.push({ from: nvidiaSmi, to: "/usr/bin/nvidia-smi" });
  return binds;
}
