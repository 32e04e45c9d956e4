/** The node's GPUs as the rest of the system sees them, out of everything that was read. */

import type { GpuProblem, NodeProblem } from "../problem.ts";
import { disjointCliques } from "./cliques.ts";
import { displacedGpus } from "./displaced_gpus.ts";
import { driverProblems } from "./driver_problems.ts";
import { classifyGpu, type GpuKind } from "./gpu_class.ts";
import { gpuProblems, rowOf } from "./gpu_problems.ts";
import { cellOf, countOf, numberOf, type Row, textOf } from "../nvidia/nvidia_csv.ts";
import { pciAddress, pciDeviceId } from "../nvidia/pci_address.ts";
import { pcieWidths } from "./pcie_width.ts";
import type { GpuReadings } from "./readings.ts";
import type { AdapterDistance, Topology } from "../nvidia/topology.ts";

/** One GPU. Undefined is unknown, never zero. */
export interface GpuFacts {
  readonly index: number;
  readonly uuid: string;
  readonly name: string;
  /** Empty when it cannot be told. */
  readonly gpuClass: string;
  /** Normalised; empty when the driver does not say. */
  readonly pciBusId: string;
  readonly memoryTotalMib: number | undefined;
  readonly memoryUsedMib: number | undefined;
  readonly computeCapability: string | undefined;
  readonly numaNode: number | undefined;
  readonly nvlinkClique: number | undefined;
  /** Names the NVLink domain that spans nodes, `<clusterUuid>/<cliqueId>`; undefined for none. */
  readonly nvlinkDomain: string | undefined;
  /** Adapters by their distance, as the topology has them; undefined: it is unknown. */
  readonly adapters: readonly AdapterDistance[] | undefined;
  /** Where sysfs has it on the PCI bus; undefined: unknown. */
  readonly sysfsPath: string | undefined;
  /** PCIe lanes that it uses, and that it could. */
  readonly pcieWidth: number | undefined;
  readonly pcieWidthMax: number | undefined;
  readonly utilizationPercent: number | undefined;
  readonly temperatureCelsius: number | undefined;
  /** Why placement must not use it. Empty means usable. */
  readonly problems: readonly GpuProblem[];
}

export interface GpuSurvey {
  /** By index. Includes GPUs that were seen since the agent started and are gone. */
  readonly gpus: readonly GpuFacts[];
  /** Empty when unknown. */
  readonly driverVersion: string;
  readonly problems: readonly NodeProblem[];
}

/** Judges all GPUs. Pure; never throws. */
export function surveyGpus(readings: GpuReadings): GpuSurvey {
  const topology = readings.topology.kind === "answered" &&
      readings.topology.value.kind === "known"
    ? readings.topology.value.topology
    : undefined;
  const cliques = cliqueByIndex(topology);
  const displaced = displacedGpus(readings);
  const gpus = [...readings.known].flatMap(([uuid, row]) => {
    const index = countOf(row, "index");
    return index === undefined || displaced.has(uuid)
      ? []
      : [factsOf({ uuid, index, row, readings, topology, cliques })];
  }).sort((a, b) => a.index - b.index || (a.uuid < b.uuid ? -1 : 1));
  const driverVersion = [...readings.known.values()]
    .map((row) => textOf(row, "driver_version")).find((version) => version !== undefined) ?? "";
  return { gpus, driverVersion, problems: driverProblems(readings) };
}

function factsOf(from: {
  readonly uuid: string;
  readonly index: number;
  readonly row: Row;
  readonly readings: GpuReadings;
  readonly topology: Topology | undefined;
  readonly cliques: ReadonlyMap<number, number>;
}): GpuFacts {
  const { uuid, index, row, readings, topology } = from;
  const kind = kindOf(row, readings);
  const live = rowOf(readings.live, uuid);
  const pciBusId = pciAddress(textOf(row, "pci.bus_id") ?? "") ?? "";
  const onBus = readings.pci.kind === "read"
    ? readings.pci.gpus.find((gpu) => gpu.address === pciBusId)
    : undefined;
  const capability = textOf(row, "compute_cap");
  return {
    index,
    uuid,
    name: textOf(row, "name") ?? "",
    gpuClass: "gpuClass" in kind ? kind.gpuClass : "",
    pciBusId,
    memoryTotalMib: kind.kind === "whole" ? kind.memoryMib : countOf(row, "memory.total"),
    memoryUsedMib: countOf(live, "memory.used"),
    computeCapability: /^\d+\.\d+$/.test(capability ?? "") ? capability : undefined,
    numaNode: onBus?.numaNode ?? topology?.numaNodes.get(index),
    nvlinkClique: from.cliques.get(index),
    nvlinkDomain: nvlinkDomainOf(rowOf(readings.recent, uuid)),
    adapters: topology?.adapters.get(index),
    sysfsPath: onBus?.path,
    ...pcieWidths(rowOf(readings.pcie, uuid)),
    utilizationPercent: utilizationOf(live),
    temperatureCelsius: temperatureOf(live),
    problems: gpuProblems(uuid, row, kind, readings),
  };
}

function kindOf(row: Row, readings: GpuReadings): GpuKind {
  const memory = cellOf(row, "memory.total");
  return classifyGpu({
    name: textOf(row, "name") ?? "",
    memoryMib: countOf(row, "memory.total"),
    memoryNotReported: memory.kind === "absent" &&
      (memory.why === "not_available" || memory.why === "not_supported"),
    pciDeviceId: pciDeviceId(textOf(row, "pci.device_id") ?? ""),
    systemMemoryMib: readings.systemMemoryMib,
  }, readings.overrides);
}

/**
 * Utilisation in percent. A GPU that the driver has just set up says 100 % for a moment; without a
 * byte of its memory in use that is not work, so it is unknown.
 */
function utilizationOf(live: Row | undefined): number | undefined {
  const percent = numberOf(live, "utilization.gpu");
  if (percent === undefined || percent < 0 || percent > 100) return undefined;
  return percent > 0 && countOf(live, "memory.used") === 0 ? undefined : Math.round(percent);
}

function temperatureOf(live: Row | undefined): number | undefined {
  const celsius = numberOf(live, "temperature.gpu");
  return celsius !== undefined && Math.abs(celsius) < 1000 ? Math.round(celsius) : undefined;
}

function cliqueByIndex(topology: Topology | undefined): ReadonlyMap<number, number> {
  const byIndex = new Map<number, number>();
  const cliques = disjointCliques(topology?.nvlinks ?? []);
  // Numbered by their first GPU, so that the numbers stay put when sizes change.
  const ordered = [...cliques].sort((a, b) => (a[0] ?? 0) - (b[0] ?? 0));
  for (const [clique, gpus] of ordered.entries()) {
    for (const gpu of gpus) byIndex.set(gpu, clique);
  }
  return byIndex;
}

/** An all-zero cluster UUID is what a machine with its own switches says: no domain beyond it. */
function nvlinkDomainOf(recent: Row | undefined): string | undefined {
  const cluster = textOf(recent, "fabric.clusterUuid");
  const clique = countOf(recent, "fabric.cliqueId");
  return cluster === undefined || clique === undefined || !/[1-9a-f]/i.test(cluster)
    ? undefined
    : `${cluster.toLowerCase()}/${clique}`;
}
