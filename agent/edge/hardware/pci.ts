/** Reads the PCI functions below `<root>/bus/pci/devices` that GPUs and RDMA adapters are. */

import type { PciSurvey } from "../../core/host/pci_survey.ts";
import { pciAddress } from "../../core/nvidia/pci_address.ts";
import { numaNode } from "../../core/rdma/hca.ts";
import { linkName, listNames, readText } from "./sysfs.ts";

const NVIDIA = "0x10de";
const MELLANOX = "0x15b3";

/** Reads the bus. Never throws. */
export async function readPci(root: string): Promise<PciSurvey> {
  const folder = `${root}/bus/pci/devices`;
  const listing = await listNames(folder);
  if (listing.kind === "missing") return { kind: "missing" };
  if (listing.kind !== "names") {
    return { kind: listing.kind, message: listing.message };
  }
  const functions = await Promise.all(listing.names.map(async (name) => {
    const vendor = await readText(`${folder}/${name}/vendor`);
    if (vendor !== NVIDIA && vendor !== MELLANOX) return undefined;
    const address = pciAddress(name);
    if (address === undefined) return undefined;
    const [pciClass, numa, driver] = await Promise.all([
      readText(`${folder}/${name}/class`),
      readText(`${folder}/${name}/numa_node`),
      linkName(`${folder}/${name}/driver`),
    ]);
    return { address, vendor, pciClass: pciClass ?? "", numaNode: numaNode(numa), driver };
  }));
  const found = functions.filter((each) => each !== undefined);
  return {
    kind: "read",
    gpus: found.filter((each) => each.vendor === NVIDIA && /^0x030[02]/.test(each.pciClass)),
    rdmaCapable: found.filter((each) =>
      each.vendor === MELLANOX && /^0x02(?:07|00)/.test(each.pciClass)
    ),
  };
}
