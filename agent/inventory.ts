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
import type { DeclaredFabric } from "./core/rdma/declared_fabric.ts";
import type { GpuClassOverride } from "./core/gpu/gpu_class.ts";
import { readHost } from "./edge/host.ts";

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
   * UUIDs of the GPUs that shards of this node hold now. When given, a process on any other GPU
   * is foreign and keeps that GPU out of placement. Absent: no such judgement.
   */
  readonly heldGpus?: () => ReadonlySet<string>;
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
   */
  inventory(signal: AbortSignal): Promise<Inventory>;
  /**
   * Live values, for a heartbeat. Never waits long: what does not answer in time is told with its
   * last values and a problem. Rejects only when `signal` aborts.
   */
  live(signal: AbortSignal): Promise<LiveHardware>;
}

export function createDiscovery(options: DiscoveryOptions): Discovery {
  const inventory = (signal: AbortSignal): Promise<Inventory> => {
    signal.throwIfAborted();
    const host = readHost(options.managementAddress);
    return Promise.resolve(create(InventorySchema, {
      hostname: host.hostname,
      os: host.os,
      arch: host.arch,
      cpuCount: host.cpuCount,
      ...(host.memoryBytes === undefined ? {} : { memoryBytes: BigInt(host.memoryBytes) }),
      managementInterface: host.managementInterface,
      enginePortFirst: options.enginePorts.first,
      enginePortLast: options.enginePorts.last,
      enginePortBlock: options.enginePorts.block,
      labels: { ...options.labels },
      problems: [...host.problems],
    }));
  };
  const live = async (signal: AbortSignal): Promise<LiveHardware> => {
    const { gpus, hcas, fabrics, modelDirs, memoryBytes, problems } = await inventory(signal);
    return { gpus, hcas, fabrics, modelDirs, modelFiles: undefined, memoryBytes, problems };
  };
  return { inventory, live };
}
