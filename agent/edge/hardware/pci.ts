/** Reads the PCI functions below `bus/pci/devices` that GPUs and RDMA adapters are. */

import type { PciSurvey } from "../../core/host/pci_survey.ts";
import { pciAddress } from "../../core/nvidia/pci_address.ts";
import { numaNode } from "../../core/rdma/hca.ts";
import { type Sysfs, textAt } from "./sysfs.ts";

const NVIDIA = "0x10de";
const MELLANOX = "0x15b3";

/** Reads the bus. Never throws. */
export async function readPci(sysfs: Sysfs): Promise<PciSurvey> {
  const folder = "bus/pci/devices";
  const listing = await sysfs.list(folder);
  if (listing.kind === "missing") return { kind: "missing" };
  if (listing.kind !== "names") {
    return { kind: listing.kind, message: listing.message };
  }
  const functions = await Promise.all(listing.names.map(async (name) => {
    const vendor = await textAt(sysfs, `${folder}/${name}/vendor`);
    if (vendor !== NVIDIA && vendor !== MELLANOX) return undefined;
    const address = pciAddress(name);
    if (address === undefined) return undefined;
    const [path, pciClass, numa, driver] = await Promise.all([
      sysfs.target(`${folder}/${name}`),
      textAt(sysfs, `${folder}/${name}/class`),
      textAt(sysfs, `${folder}/${name}/numa_node`),
      sysfs.target(`${folder}/${name}/driver`),
    ]);
    return {
      address,
      vendor,
      pciClass: pciClass ?? "",
      numaNode: numaNode(numa),
      path,
      driver: driver?.split("/").at(-1),
    };
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
