/** Reads the RDMA devices below `<root>/class/infiniband`, one attribute at a time. */

import type { HcaReading, PortReading } from "../../core/rdma/hca.ts";
import type { RdmaReading } from "../../core/rdma/rdma_survey.ts";
import { isPresent, type Listing, listNames, readText, resolvedPath } from "./sysfs.ts";

/** The largest boxes have 16 adapters and some hundred virtual functions beside them. */
const DEVICE_COUNT_MAX = 512;
const PORT_COUNT_MAX = 16;

const MELLANOX = "0x15b3";

/** Vital product data is at most 32 KiB; the model line stands in its first few hundred bytes. */
const VPD_BYTES_MAX = 4096;

/** Reads all devices. Never throws: what cannot be read is undefined in its reading. */
export async function readRdma(root: string): Promise<RdmaReading> {
  const folder = `${root}/class/infiniband`;
  const listing: Listing = await listNames(folder);
  if (listing.kind === "missing") return { kind: "missing" };
  if (listing.kind !== "names") return { kind: "unreadable", message: listing.message };
  const names = listing.names.slice(0, DEVICE_COUNT_MAX);
  const devices = await Promise.all(names.map((name) => readDevice(folder, name)));
  return { kind: "devices", devices };
}

const NOTHING_READ: Omit<HcaReading, "name"> = {
  devicePath: undefined,
  nodeType: undefined,
  nodeDesc: undefined,
  vendor: undefined,
  sysImageGuid: undefined,
  numaNode: undefined,
  virtualFunction: false,
  softParent: false,
  switchManagement: false,
  ports: [],
};

async function readDevice(folder: string, name: string): Promise<HcaReading> {
  const at = `${folder}/${name}`;
  // A card can have hundreds of virtual functions, and nothing of them matters but that.
  if (await isPresent(`${at}/device/physfn`)) {
    return { ...NOTHING_READ, name, virtualFunction: true };
  }
  const [nodeType, nodeDesc, vendor, sysImageGuid, numaNode] = await Promise.all([
    readText(`${at}/node_type`),
    readText(`${at}/node_desc`),
    readText(`${at}/device/vendor`),
    readText(`${at}/sys_image_guid`),
    readText(`${at}/device/numa_node`),
  ]);
  return {
    name,
    devicePath: await resolvedPath(at),
    nodeType,
    nodeDesc,
    vendor,
    sysImageGuid,
    numaNode,
    virtualFunction: false,
    softParent: await isPresent(`${at}/parent`),
    switchManagement: vendor === MELLANOX &&
      await saysSwitchManagement(`${at}/device/vpd`),
    ports: await readPorts(`${at}/ports`),
  };
}

async function readPorts(folder: string): Promise<PortReading[]> {
  const listing = await listNames(folder);
  if (listing.kind !== "names") return [];
  const numbers = listing.names.filter((name) => /^\d{1,3}$/.test(name)).slice(0, PORT_COUNT_MAX);
  return await Promise.all(numbers.map(async (number) => {
    const at = `${folder}/${number}`;
    const [state, physState, linkLayer, rate] = await Promise.all([
      readText(`${at}/state`),
      readText(`${at}/phys_state`),
      readText(`${at}/link_layer`),
      readText(`${at}/rate`),
    ]);
    return { port: Number(number), state, physState, linkLayer, rate };
  }));
}

/** On HGX B200 and B300 the NVSwitches' management functions name themselves in their VPD. */
async function saysSwitchManagement(path: string): Promise<boolean> {
  try {
    using file = await Deno.open(path);
    const buffer = new Uint8Array(VPD_BYTES_MAX);
    const count = await file.read(buffer);
    return new TextDecoder("latin1").decode(buffer.subarray(0, count ?? 0)).includes("SW_MNG");
  } catch {
    return false; // no VPD, or not readable for this user: then it is taken for an adapter
  }
}
