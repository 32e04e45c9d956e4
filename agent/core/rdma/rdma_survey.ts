/** The node's RDMA adapters and fabrics, out of what sysfs gave, and what is wrong with reading it. */

import { shellWord } from "../host/shell_word.ts";
import type { PciSurvey } from "../host/pci_survey.ts";
import type { NodeProblem } from "../problem.ts";
import type { DeclaredFabric } from "./declared_fabric.ts";
import { checkFabrics, type UsableFabric } from "./fabric.ts";
import { type HcaPort, type HcaReading, surveyHcas } from "./hca.ts";

/** What the class directory said. */
export type RdmaReading =
  | { readonly kind: "devices"; readonly devices: readonly HcaReading[] }
  /** The directory is not there: no RDMA driver is loaded, or there is no such root. */
  | { readonly kind: "missing" }
  | { readonly kind: "unreadable"; readonly message: string };

export interface RdmaReadings {
  readonly sysfsRoot: string;
  readonly rdma: RdmaReading;
  readonly pci: PciSurvey;
  readonly declared: readonly DeclaredFabric[];
  /** The node's addresses by network interface. */
  readonly addresses: ReadonlyMap<string, readonly string[]>;
  /** Windows' subsystem: whatever it shows, it is no node of a fabric. */
  readonly wsl: boolean;
}

export interface RdmaSurvey {
  readonly ports: readonly HcaPort[];
  readonly fabrics: readonly UsableFabric[];
  readonly problems: readonly NodeProblem[];
}

/** Judges adapters and fabrics. Pure; never throws. */
export function surveyRdma(readings: RdmaReadings): RdmaSurvey {
  const { rdma, declared } = readings;
  const survey = surveyHcas(rdma.kind === "devices" ? rdma.devices : [], readings.addresses);
  const own = readingProblem(readings);
  const unreadable = rdma.kind === "devices" || own === undefined
    ? undefined
    : "which adapters there are is not known (see the node's other problem)";
  const check = checkFabrics(declared, survey, unreadable);
  if (readings.wsl && declared.length > 0) {
    return {
      ports: check.ports,
      fabrics: [],
      problems: [{
        reason: "fabric_wsl",
        detail: `Fabrics ${
          declared.map((each) => each.name).join(", ")
        } are not advertised: this ` +
          "node runs under Windows (WSL), where RDMA does not reach.",
        remedy: "Take the fabrics out of its configuration, or run Linux on the machine itself.",
      }],
    };
  }
  const problems = own === undefined ? check.problems : [own, ...check.problems];
  return { ports: check.ports, fabrics: check.fabrics, problems };
}

/** Where the agent's unit binds sysfs. */
const BOUND = "/run/heddle/sys";

/** For an operator's shell; until the next boot. */
function bindTo(folder: string): string {
  const word = shellWord(folder);
  return `sudo mkdir -p ${word} && sudo mount --bind /sys ${word}`;
}

function readingProblem(readings: RdmaReadings): NodeProblem | undefined {
  const { rdma, pci, sysfsRoot } = readings;
  const denied = rdma.kind === "unreadable"
    ? rdma.message
    : pci.kind === "denied" || pci.kind === "unreadable"
    ? pci.message
    : undefined;
  if (denied !== undefined) {
    return {
      reason: "sysfs_denied",
      detail: `Adapters and the PCI bus cannot be read below ${sysfsRoot}: ${denied}`,
      remedy: /^\/sys(?:\/|$)/.test(sysfsRoot)
        ? `Deno reads nothing below /sys itself: bind it elsewhere with \`${
          bindTo(BOUND)
        }\`, as the ` +
          `agent's unit does (BindReadOnlyPaths=/sys:${BOUND}), and set sysfs_root to ${BOUND}.`
        : "Name the folder in HEDDLE_READ where the agent is started, and check its mode.",
    };
  }
  if (rdma.kind === "missing" && pci.kind === "missing") {
    return {
      reason: "sysfs_missing",
      detail:
        `There is no sysfs below ${sysfsRoot}, so neither adapters nor the PCI bus are known.`,
      remedy: `Bind it there: \`${bindTo(sysfsRoot)}\`. The agent's unit does so by itself ` +
        `(BindReadOnlyPaths=/sys:${BOUND}).`,
    };
  }
  return rdma.kind === "missing" ? driverMissing(readings) : undefined;
}

/**
 * Adapters on the bus without any RDMA device: the driver's RDMA half is a package of its own on
 * some systems, and without it engines fall back to TCP in silence. An Ethernet adapter alone may
 * well be meant for TCP, so it counts only where GPUs or declared fabrics say otherwise.
 */
function driverMissing(readings: RdmaReadings): NodeProblem | undefined {
  const { pci, declared } = readings;
  if (pci.kind !== "read") return undefined;
  const wanted = declared.length > 0 || pci.gpus.length > 0;
  const adapters = pci.rdmaCapable.filter((each) => wanted || each.pciClass.startsWith("0x0207"));
  if (adapters.length === 0) return undefined;
  return {
    reason: "rdma_driver_missing",
    detail: `The PCI bus shows ${adapters.length} RDMA adapter(s), the first at ` +
      `${adapters[0]?.address}, and the kernel offers no RDMA device.`,
    remedy: "Load mlx5_ib; on Ubuntu it is in linux-modules-extra-$(uname -r). Install rdma-core.",
  };
}
