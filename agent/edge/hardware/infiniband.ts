/** Reads the RDMA devices below `class/infiniband`, one attribute at a time. */

import type { GidEntry } from "../../core/rdma/gid.ts";
import type { HcaReading, PortReading } from "../../core/rdma/hca.ts";
import type { RdmaReading } from "../../core/rdma/rdma_survey.ts";
import { type Sysfs, textAt } from "./sysfs.ts";

const CLASS = "class/infiniband";

/** The largest boxes have 16 adapters and some hundred virtual functions beside them. */
const DEVICE_COUNT_MAX = 512;
const PORT_COUNT_MAX = 16;

const MELLANOX = "0x15b3";

/** Adapters have 16 to 256 entries, software devices 1,024; used ones stand at the beginning. */
const GID_COUNT_MAX = 64;
/** So many empty entries in a row end the table. */
const GID_GAP_MAX = 4;

/** Reads all devices. Never throws: what cannot be read is undefined in its reading. */
export async function readRdma(sysfs: Sysfs): Promise<RdmaReading> {
  const listing = await sysfs.list(CLASS);
  if (listing.kind === "missing") return { kind: "missing" };
  if (listing.kind !== "names") return { kind: "unreadable", message: listing.message };
  const names = listing.names.slice(0, DEVICE_COUNT_MAX);
  const devices = await Promise.all(names.map((name) => readDevice(sysfs, name)));
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

async function readDevice(sysfs: Sysfs, name: string): Promise<HcaReading> {
  const at = `${CLASS}/${name}`;
  // A card can have hundreds of virtual functions, and nothing of them matters but that.
  if (await sysfs.isPresent(`${at}/device/physfn`)) {
    return { ...NOTHING_READ, name, virtualFunction: true };
  }
  const [nodeType, nodeDesc, vendor, sysImageGuid, numaNode] = await Promise.all([
    textAt(sysfs, `${at}/node_type`),
    textAt(sysfs, `${at}/node_desc`),
    textAt(sysfs, `${at}/device/vendor`),
    textAt(sysfs, `${at}/sys_image_guid`),
    textAt(sysfs, `${at}/device/numa_node`),
  ]);
  return {
    name,
    devicePath: await sysfs.target(at),
    nodeType,
    nodeDesc,
    vendor,
    sysImageGuid,
    numaNode,
    virtualFunction: false,
    softParent: await sysfs.isPresent(`${at}/parent`),
    // On HGX B200 and B300 the NVSwitches' management functions name themselves so.
    switchManagement: vendor === MELLANOX &&
      await sysfs.holds(`${at}/device/vpd`, "SMDL=SW_MNG"),
    ports: await readPorts(sysfs, `${at}/ports`),
  };
}

async function readPorts(sysfs: Sysfs, folder: string): Promise<PortReading[]> {
  const listing = await sysfs.list(folder);
  if (listing.kind !== "names") return [];
  const numbers = listing.names.filter((name) => /^\d{1,3}$/.test(name)).slice(0, PORT_COUNT_MAX);
  return await Promise.all(numbers.map(async (number) => {
    const at = `${folder}/${number}`;
    const [state, physState, linkLayer, rate] = await Promise.all([
      textAt(sysfs, `${at}/state`),
      textAt(sysfs, `${at}/phys_state`),
      textAt(sysfs, `${at}/link_layer`),
      textAt(sysfs, `${at}/rate`),
    ]);
    // Only RoCE chooses among GIDs.
    const gids = linkLayer === "Ethernet" ? await readGids(sysfs, at) : [];
    return { port: Number(number), state, physState, linkLayer, rate, gids };
  }));
}

/** The port's GID table up to its first gap. An index in use may refuse its type or interface. */
async function readGids(sysfs: Sysfs, port: string): Promise<GidEntry[]> {
  const entries: GidEntry[] = [];
  for (let index = 0, gap = 0; index < GID_COUNT_MAX && gap < GID_GAP_MAX; index += 1) {
    const gid = await textAt(sysfs, `${port}/gids/${index}`);
    if (gid === undefined || !/[1-9a-f]/i.test(gid)) {
      gap += 1;
      continue;
    }
    gap = 0;
    const [type, netDevice] = await Promise.all([
      textAt(sysfs, `${port}/gid_attrs/types/${index}`),
      textAt(sysfs, `${port}/gid_attrs/ndevs/${index}`),
    ]);
    entries.push({ index, gid, type, netDevice });
  }
  return entries;
}
