/**
 * What the node has: the one place where the parts of discovery come together. Every part fails
 * alone, and what is missing is told as a problem, so that a machine without any GPU, driver or
 * adapter still registers.
 */

import { create } from "@bufbuild/protobuf";
import {
  type Fabric,
  type Gpu,
  type Hca,
  type Inventory,
  InventorySchema,
  type ModelDir,
  type ModelFile,
  type Problem,
} from "@heddle/proto/gen/types";
import { cpuProblem } from "./core/host/cpu_flags.ts";
import type { GpuClassOverride } from "./core/gpu/gpu_class.ts";
import type { GpuUse } from "./core/gpu/gpu_release.ts";
import { nearHcas, type PlacedHca } from "./core/host/pci_distance.ts";
import type { LinkReadings } from "./core/health/link_fault.ts";
import type { XidEvent } from "./core/health/xid.ts";
import { addressesOf, type HostFacts, runsUnderWindows } from "./core/host/host_facts.ts";
import { addressNotLocal, managementInterface } from "./core/host/management_interface.ts";
import type { NodeProblem } from "./core/problem.ts";
import type { DeclaredFabric } from "./core/rdma/declared_fabric.ts";
import { type HcaPort, numaNode } from "./core/rdma/hca.ts";
import { surveyRdma } from "./core/rdma/rdma_survey.ts";
import { BootMemory } from "./edge/boot_memory.ts";
import {
  encodeFabric,
  encodeGpu,
  encodeHca,
  encodeModelDir,
  encodeModelFile,
  encodeProblem,
} from "./edge/encode_inventory.ts";
import type { TimedCall } from "./edge/hardware/timed_nvidia_smi.ts";
import { textAt } from "./edge/hardware/sysfs.ts";
import { FaultWatch } from "./discovery/fault_watch.ts";
import { type HardwareSource, machineSource } from "./discovery/hardware_source.ts";
import {
  GPU_WATCH_LIMITS,
  GpuWatch,
  type GpuWatchLimits,
  type SeeStrangers,
} from "./discovery/gpu_watch.ts";
import { ModelWatch } from "./discovery/model_watch.ts";
import { RdmaWatch } from "./discovery/rdma_watch.ts";
import { SingleFlight } from "./discovery/single_flight.ts";

export type { DeclaredFabric } from "./core/rdma/declared_fabric.ts";

export interface DiscoveryOptions {
  /** Where sysfs is readable: `/run/heddle/sys` in production (Deno refuses `/sys` itself). */
  readonly sysfsRoot: string;
  /** Absolute path of nvidia-smi; undefined: the node has none. */
  readonly nvidiaSmi: string | undefined;
  readonly fabrics: readonly DeclaredFabric[];
  readonly modelDirs: readonly string[];
  readonly enginePorts: { readonly first: number; readonly last: number; readonly block: number };
  readonly labels: Readonly<Record<string, string>>;
  readonly gpuClassOverride?: readonly GpuClassOverride[];
  /** Monotonic or wall clock in milliseconds; used only for the age of readings. */
  readonly now: () => number;
  readonly managementAddress: string;
  /**
   * Where the kernel's log is readable: `/run/heddle/kmsg` in production (Deno refuses `/dev`).
   * Absent, or not there: faults that only the kernel tells of stay unknown.
   */
  readonly kernelLog?: string;
  /**
   * UUIDs of the GPUs that shards of this node hold now. When given, a process on any other GPU
   * is foreign and keeps that GPU out of placement. Absent: no such judgement.
   */
  readonly heldGpus?: () => ReadonlySet<string>;
  /** Tells processes on held GPUs from engines. Absent: every process there is taken for an engine's. */
  readonly strangers?: SeeStrangers | undefined;
  /** What was seen since the machine was started; absent: only what this discovery sees itself. */
  readonly memory?: BootMemory;
  /** Hears of each call of nvidia-smi. */
  readonly onNvidiaSmi?: (call: TimedCall) => void;
}

/** What changes between registrations. */
export interface LiveHardware {
  readonly gpus: Gpu[];
  readonly hcas: Hca[];
  readonly fabrics: Fabric[];
  readonly modelDirs: ModelDir[];
  /** Undefined: nothing changed since the last list given out. */
  readonly modelFiles: ModelFile[] | undefined;
  /** Undefined: unknown. */
  readonly memoryBytes: bigint | undefined;
  readonly problems: Problem[];
}

export interface Discovery {
  /**
   * Everything the node has, for a registration. Waits for the parts within their deadlines; after
   * the first call what was read lately is not read again. Rejects only when `signal` aborts.
   * `engines` and `engines_probed` are left empty.
   *
   * `signal` is that of the agent's life, not a deadline: it kills what is being run.
   */
  inventory(signal: AbortSignal): Promise<Inventory>;
  /**
   * Live values, for a heartbeat. Waits two seconds at most: what does not answer in time is told
   * with its last values, and goes on being read. Rejects only when `signal` (as above) aborts.
   */
  live(signal: AbortSignal): Promise<LiveHardware>;
  /**
   * Who uses the GPUs, from a look that begins after the call. Undefined: the driver did not answer
   * in time, or there is none. Rejects only when `signal` (as above) aborts.
   */
  gpuUses(signal: AbortSignal): Promise<readonly GpuUse[] | undefined>;
  /** What the last answer's readings say of links. */
  links(): LinkReadings;
  /** Faults of GPUs since the boot, which the kernel's log told. */
  kernelFaults(): readonly XidEvent[];
  /** What the kernel has logged of GPUs since then, by the clock that `now` is. */
  kernelFaultsSince(at: number): readonly XidEvent[];
}

/** How long discovery waits, in ms. */
export interface DiscoveryLimits extends GpuWatchLimits {
  readonly inventoryWaitMs: number;
  readonly liveWaitMs: number;
}

export const DISCOVERY_LIMITS: DiscoveryLimits = {
  ...GPU_WATCH_LIMITS,
  /** A list of fields and one query, both at their deadlines, and a little. */
  inventoryWaitMs: 35_000,
  /** Under half of a heartbeat interval, so that a wedged driver makes no node look unreachable. */
  liveWaitMs: 2_000,
};

/** What both answers are made of. */
interface Survey {
  readonly host: HostFacts;
  readonly gpus: Gpu[];
  readonly driverVersion: string;
  readonly hcas: Hca[];
  readonly fabrics: Fabric[];
  readonly modelDirs: ModelDir[];
  readonly problems: Problem[];
}

/** Nothing is read before the first call. */
export function createDiscovery(
  options: DiscoveryOptions,
  limits: DiscoveryLimits = DISCOVERY_LIMITS,
): Discovery {
  const { sysfsRoot, nvidiaSmi, onNvidiaSmi } = options;
  return createDiscoveryOf(machineSource(sysfsRoot, nvidiaSmi, onNvidiaSmi), options, limits);
}

/** Discovery of another source than the machine itself: a recording of it, or a capture. */
export function createDiscoveryOf(
  source: HardwareSource,
  options: DiscoveryOptions,
  limits: DiscoveryLimits = DISCOVERY_LIMITS,
): Discovery {
  return new HardwareDiscovery(options, source, limits);
}

class HardwareDiscovery implements Discovery {
  readonly #options: DiscoveryOptions;
  readonly #limits: DiscoveryLimits;
  readonly #source: HardwareSource;
  readonly #wsl: boolean;
  readonly #gpus: GpuWatch;
  readonly #models: ModelWatch;
  readonly #faults: FaultWatch;
  readonly #rdma: RdmaWatch;
  readonly #gpuFlight = new SingleFlight();
  readonly #rdmaFlight = new SingleFlight();
  #cpuModalias: string | undefined;
  /** The list of files that was given out last, as text. */
  #filesGiven: string | undefined;

  constructor(options: DiscoveryOptions, source: HardwareSource, limits: DiscoveryLimits) {
    this.#options = options;
    this.#limits = limits;
    this.#source = source;
    this.#wsl = runsUnderWindows(source.host()) ||
      (source.nvidiaSmi?.path.startsWith("/usr/lib/wsl/") ?? false);
    const memory = options.memory ?? new BootMemory();
    this.#faults = new FaultWatch(options.kernelLog, { now: options.now, memory });
    this.#rdma = new RdmaWatch(source.sysfs, options.now);
    this.#models = new ModelWatch(options.modelDirs, options.now);
    this.#gpus = new GpuWatch({
      sysfs: source.sysfs,
      nvidiaSmi: source.nvidiaSmi,
      overrides: options.gpuClassOverride ?? [],
      heldGpus: options.heldGpus,
      strangers: options.strangers,
      wsl: this.#wsl,
      faults: () => this.#faults.events(),
      now: options.now,
      limits,
      memory,
    });
  }

  async inventory(signal: AbortSignal): Promise<Inventory> {
    const { enginePorts, labels, managementAddress } = this.#options;
    const { host, ...survey } = await this.#survey(this.#limits.inventoryWaitMs, signal);
    const files = this.#models.files();
    this.#filesGiven = JSON.stringify(files);
    return create(InventorySchema, {
      ...survey,
      hostname: host.hostname,
      os: host.os,
      arch: host.arch,
      cpuCount: host.cpuCount,
      ...(host.memoryBytes === undefined ? {} : { memoryBytes: BigInt(host.memoryBytes) }),
      managementInterface: managementInterface(managementAddress, host.interfaces ?? []) ?? "",
      modelFiles: files.map(encodeModelFile),
      modelFilesPresent: true,
      enginePortFirst: enginePorts.first,
      enginePortLast: enginePorts.last,
      enginePortBlock: enginePorts.block,
      labels: { ...labels },
    });
  }

  async live(signal: AbortSignal): Promise<LiveHardware> {
    const survey = await this.#survey(this.#limits.liveWaitMs, signal);
    const { memoryBytes } = survey.host;
    const files = this.#models.files();
    const text = JSON.stringify(files);
    const changed = text !== this.#filesGiven;
    this.#filesGiven = text;
    return {
      gpus: survey.gpus,
      hcas: survey.hcas,
      fabrics: survey.fabrics,
      modelDirs: survey.modelDirs,
      problems: survey.problems,
      modelFiles: changed ? files.map(encodeModelFile) : undefined,
      memoryBytes: memoryBytes === undefined ? undefined : BigInt(memoryBytes),
    };
  }

  async gpuUses(signal: AbortSignal): Promise<readonly GpuUse[] | undefined> {
    if (this.#source.nvidiaSmi === undefined) return undefined;
    const since = this.#options.now();
    const read = () => this.#gpus.refresh(signal, since);
    await this.#gpuFlight.within(this.#limits.inventoryWaitMs, signal, read);
    // A look that was under way already began before the call, and says nothing.
    if (this.#gpus.uses(since) === undefined) {
      await this.#gpuFlight.within(this.#limits.inventoryWaitMs, signal, read);
    }
    return this.#gpus.uses(since);
  }

  links(): LinkReadings {
    return { ...this.#gpus.links(), ports: this.#rdma.ports() };
  }

  kernelFaults(): readonly XidEvent[] {
    return [...this.#faults.events().values()].flat();
  }

  kernelFaultsSince(at: number): readonly XidEvent[] {
    return this.#faults.since(at);
  }

  async #survey(waitMs: number, signal: AbortSignal): Promise<Survey> {
    const [answered] = await Promise.all([
      this.#gpuFlight.within(waitMs, signal, () => this.#gpus.refresh(signal)),
      this.#rdmaFlight.within(waitMs, signal, () => this.#readSysfs()),
      this.#models.refresh(waitMs, signal),
      this.#faults.start(),
    ]);
    const host = this.#source.host();
    const systemMemoryMib = host.memoryBytes === undefined
      ? undefined
      : Math.floor(host.memoryBytes / 1024 ** 2);
    const gpus = this.#gpus.survey(systemMemoryMib, !answered);
    const rdma = surveyRdma({
      sysfsRoot: this.#source.sysfs.root,
      rdma: this.#rdma.reading,
      pci: this.#gpus.pci(),
      declared: this.#options.fabrics,
      addresses: addressesOf(host),
      wsl: this.#wsl,
    });
    const problems = [
      ...host.problems,
      ...this.#addressProblems(host),
      ...gpus.problems,
      ...rdma.problems,
      ...this.#rdma.problems(),
      ...this.#models.problems(),
      cpuProblem(this.#cpuModalias) ?? [],
    ].flat();
    return {
      host,
      gpus: gpus.gpus.map((gpu) => encodeGpu(gpu, nearHcas(gpu, this.#placedHcas(rdma.ports)))),
      driverVersion: gpus.driverVersion,
      hcas: rdma.ports.map(encodeHca),
      fabrics: rdma.fabrics.map(encodeFabric),
      modelDirs: this.#models.directories().map(encodeModelDir),
      problems: problems.map(encodeProblem),
    };
  }

  // What is no adapter for GPUs is near to nothing.
  #placedHcas(ports: readonly HcaPort[]): readonly PlacedHca[] {
    const { reading } = this.#rdma;
    const names = new Set(ports.map(({ name }) => name));
    return reading.kind !== "devices" ? [] : reading.devices
      .filter(({ name }) => names.has(name))
      .map((each) => ({
        name: each.name,
        path: each.devicePath,
        numaNode: numaNode(each.numaNode),
      }));
  }

  #addressProblems({ interfaces }: HostFacts): readonly NodeProblem[] {
    const { managementAddress } = this.#options;
    if (interfaces === undefined) return [];
    return managementInterface(managementAddress, interfaces) === undefined
      ? [addressNotLocal(managementAddress, interfaces)]
      : [];
  }

  async #readSysfs(): Promise<void> {
    await this.#rdma.refresh();
    this.#cpuModalias ??= await textAt(this.#source.sysfs, "devices/system/cpu/modalias");
  }
}
