/**
 * Which RDMA devices are adapters that GPUs can send through. sysfs lists more than those: virtual
 * functions, software devices, iWARP, Amazon's EFA, and on HGX B200/B300 the NVSwitches' management
 * functions, which look like ordinary active InfiniBand ports and carry nothing.
 */

import { functionOf } from "../host/pci_distance.ts";
import { pciAddress } from "../nvidia/pci_address.ts";
import type { HcaProblem } from "../problem.ts";
import { type GidEntry, roceGidIndex } from "./gid.ts";

/** A device as sysfs tells it; undefined is a file that is missing or cannot be read. */
export interface HcaReading {
  readonly name: string;
  /** Where the class's link leads, for example `…/devices/virtual/infiniband/rxe0`. */
  readonly devicePath: string | undefined;
  readonly nodeType: string | undefined;
  readonly nodeDesc: string | undefined;
  readonly vendor: string | undefined;
  readonly sysImageGuid: string | undefined;
  readonly numaNode: string | undefined;
  /** `device/physfn` exists. */
  readonly virtualFunction: boolean;
  /** A `parent` attribute exists, which only devices made in software have. */
  readonly softParent: boolean;
  /** The device's VPD says `SMDL=SW_MNG`. */
  readonly switchManagement: boolean;
  readonly ports: readonly PortReading[];
}

export interface PortReading {
  readonly port: number;
  readonly state: string | undefined;
  readonly physState: string | undefined;
  readonly linkLayer: string | undefined;
  readonly rate: string | undefined;
  /** Used entries of its GID table; empty for InfiniBand. */
  readonly gids: readonly GidEntry[];
}

export type LinkLayer = "infiniband" | "ethernet";

/** One port of an adapter. Undefined is unknown. */
export interface HcaPort {
  readonly name: string;
  readonly port: number;
  readonly linkLayer: LinkLayer | undefined;
  readonly active: boolean;
  readonly rateGbps: number | undefined;
  readonly numaNode: number | undefined;
  /** Normalised; undefined: unknown. */
  readonly pciBusId: string | undefined;
  /** Entry of the GID table for RoCE v2 over IPv4; undefined for none, and for InfiniBand. */
  readonly roceGidIndex: number | undefined;
  /** The declared fabric it belongs to; empty for none. */
  readonly fabric: string;
  /** Why it cannot carry traffic. Empty means usable. */
  readonly problems: readonly HcaProblem[];
}

/** A device that is no adapter for GPUs, and why, in words that end a sentence. */
export interface ExcludedHca {
  readonly name: string;
  readonly why: string;
}

export interface HcaSurvey {
  readonly ports: readonly HcaPort[];
  readonly excluded: readonly ExcludedHca[];
}

const AMAZON = "0x1d0f";

/**
 * Sorts the devices into adapters and others, and judges each port. `addresses` are the node's own,
 * by network interface. Never throws.
 */
export function surveyHcas(
  readings: readonly HcaReading[],
  addresses: ReadonlyMap<string, readonly string[]> = new Map(),
): HcaSurvey {
  const ports: HcaPort[] = [];
  const excluded: ExcludedHca[] = [];
  for (const reading of readings) {
    const why = exclusionOf(reading);
    if (why !== undefined) excluded.push({ name: reading.name, why });
    else ports.push(...reading.ports.map((port) => judgePort(reading, port, addresses)));
  }
  return { ports, excluded };
}

function exclusionOf(reading: HcaReading): string | undefined {
  if (reading.virtualFunction) return "it is a virtual function; declare its physical function";
  const software = reading.softParent || /^(?:rxe|siw)/.test(reading.name) ||
    /\/devices\/virtual\//.test(reading.devicePath ?? "") ||
    /^(?:rxe|software iwarp)/i.test(reading.nodeDesc ?? "");
  if (software) return "it is a software device (Soft-RoCE or SoftiWARP)";
  if (reading.switchManagement) return "it is a management function of the NVSwitches";
  const layers = reading.ports.map((port) => port.linkLayer?.toLowerCase());
  if (reading.vendor?.toLowerCase() === AMAZON) {
    return "it is an EFA adapter, which InfiniBand verbs cannot use";
  }
  if (/^4\b|RNIC/.test(reading.nodeType ?? "")) {
    return "it speaks iWARP, which NCCL cannot use; switch it to RoCE where it can";
  }
  if (/^[567]\b/.test(reading.nodeType ?? "")) return "its verbs are not InfiniBand's";
  if (layers.length > 0 && layers.every((layer) => layer === "unknown")) {
    return "its link layer is neither InfiniBand nor Ethernet";
  }
  return undefined;
}

function judgePort(
  reading: HcaReading,
  port: PortReading,
  addresses: ReadonlyMap<string, readonly string[]>,
): HcaPort {
  const state = stateNumber(port.state);
  const linkLayer = linkLayerOf(port.linkLayer);
  const problems: HcaProblem[] = [];
  const label = `${reading.name} port ${port.port}`;
  if (state === undefined) {
    problems.push({
      reason: "port_state_unknown",
      detail: `${label} does not say its state.`,
      remedy: "Look at the kernel log for its driver, and whether ibstat answers for it.",
    });
  } else if (state === INIT || state === ARMED) {
    problems.push({
      reason: "no_subnet_manager",
      detail: `${label} has a link and is in state "${port.state}": no subnet manager set it up.`,
      remedy: "Start the subnet manager of this fabric (opensm, or the one in the switch).",
    });
  } else if (state !== ACTIVE) {
    problems.push({
      reason: "port_down",
      detail: `${label} is in state "${port.state}", physical state "${port.physState ?? "?"}".`,
      remedy: /Disabled/i.test(port.physState ?? "")
        ? "Enable the port, or take it out of the fabric's declaration."
        : "Check cable, transceiver and switch port.",
    });
  }
  if (linkLayer === undefined) {
    problems.push({
      reason: "link_layer_unknown",
      detail: `${label} does not say whether it is InfiniBand or Ethernet.`,
      remedy: "Check that the adapter's driver is the one for this kernel.",
    });
  }
  return {
    name: reading.name,
    port: port.port,
    linkLayer,
    active: state === ACTIVE,
    rateGbps: rateGbps(port.rate),
    numaNode: numaNode(reading.numaNode),
    pciBusId: pciAddress(functionOf(reading.devicePath) ?? ""),
    roceGidIndex: linkLayer === "ethernet" ? roceGidIndex(port.gids, addresses) : undefined,
    fabric: "",
    problems,
  };
}

const INIT = 2;
const ARMED = 3;
const ACTIVE = 4;

/** `4: ACTIVE` → 4. */
function stateNumber(text: string | undefined): number | undefined {
  const digit = /^(\d)\s*:/.exec(text ?? "")?.[1];
  return digit === undefined ? undefined : Number(digit);
}

function linkLayerOf(text: string | undefined): LinkLayer | undefined {
  const word = text?.trim().toLowerCase();
  return word === "infiniband" || word === "ethernet" ? word : undefined;
}

/** `400 Gb/sec (4X NDR)` → 400, `2.5 Gb/sec (1X SDR)` → 2; undefined when it is no rate above 0. */
export function rateGbps(text: string | undefined): number | undefined {
  const digits = /^(\d{1,6})(?:\.\d+)?\s*Gb\/sec/i.exec(text?.trim() ?? "")?.[1];
  const rate = Number(digits ?? 0);
  return rate > 0 ? rate : undefined;
}

/** A NUMA node; `-1`, as virtual machines say, is unknown and not node 0. */
export function numaNode(text: string | undefined): number | undefined {
  return /^\d{1,5}$/.test(text?.trim() ?? "") ? Number(text) : undefined;
}
