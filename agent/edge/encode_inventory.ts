/** Discovery's findings as messages. Unknown stays absent. */

import { create } from "@bufbuild/protobuf";
import {
  type Fabric,
  FabricSchema,
  type Gpu,
  GpuPlaceSchema,
  GpuSchema,
  type Hca,
  HcaDistanceSchema,
  HcaSchema,
  LinkLayer,
  type ModelDir,
  ModelDirSchema,
  type ModelFile,
  ModelFileSchema,
  type NodeLoad,
  NodeLoadSchema,
  type Problem as ProblemMessage,
  ProblemSchema,
  ShardUsageSchema,
} from "@heddle/proto/gen/types";
import type { GpuFacts } from "../core/gpu/gpu_facts.ts";
import type { HcaDistance } from "../core/host/pci_distance.ts";
import type { FoundFile } from "../core/host/model_files.ts";
import { type Taken, total } from "../core/host/process_usage.ts";
import type { Problem } from "../core/problem.ts";
import type { UsableFabric } from "../core/rdma/fabric.ts";
import type { HcaPort } from "../core/rdma/hca.ts";
import type { HostLoad } from "./hardware/host.ts";

/** `hcas` are the adapters near it, as far as that is known. */
export function encodeGpu(gpu: GpuFacts, hcas: readonly HcaDistance[]): Gpu {
  const { pcieWidth, pcieWidthMax } = gpu;
  const placed = hcas.length > 0 || pcieWidth !== undefined || pcieWidthMax !== undefined;
  return create(GpuSchema, {
    index: gpu.index,
    uuid: gpu.uuid,
    name: gpu.name,
    gpuClass: gpu.gpuClass,
    pciBusId: gpu.pciBusId,
    ...known({
      memoryTotalMib: gpu.memoryTotalMib,
      memoryUsedMib: gpu.memoryUsedMib,
      computeCapability: gpu.computeCapability,
      numaNode: gpu.numaNode,
      nvlinkClique: gpu.nvlinkClique,
      utilizationPercent: gpu.utilizationPercent,
      temperatureCelsius: gpu.temperatureCelsius,
      nvlinkDomain: gpu.nvlinkDomain,
    }),
    ...(placed
      ? {
        place: create(GpuPlaceSchema, {
          hcas: hcas.map((each) => create(HcaDistanceSchema, each)),
          ...known({ pcieWidth, pcieWidthMax }),
        }),
      }
      : {}),
    problems: gpu.problems.map(encodeProblem),
  });
}

const LINK_LAYERS = { infiniband: LinkLayer.INFINIBAND, ethernet: LinkLayer.ETHERNET } as const;

export function encodeHca(port: HcaPort): Hca {
  return create(HcaSchema, {
    name: port.name,
    port: port.port,
    linkLayer: port.linkLayer === undefined ? LinkLayer.UNSPECIFIED : LINK_LAYERS[port.linkLayer],
    active: port.active,
    ...known({
      rateGbps: port.rateGbps,
      numaNode: port.numaNode,
      roceGidIndex: port.roceGidIndex,
      pciBusId: port.pciBusId,
    }),
    fabric: port.fabric,
    problems: port.problems.map(encodeProblem),
  });
}

export function encodeFabric(fabric: UsableFabric): Fabric {
  return create(FabricSchema, {
    name: fabric.name,
    degraded: fabric.degraded,
    hcas: [...fabric.hcas],
    ...known({ rateGbps: fabric.rateGbps }),
  });
}

/** A model directory as it is known now. */
export interface KnownModelDir {
  readonly path: string;
  readonly freeBytes: number | undefined;
  readonly shared: boolean;
}

export function encodeModelDir(dir: KnownModelDir): ModelDir {
  const freeBytes = dir.freeBytes === undefined ? undefined : BigInt(Math.floor(dir.freeBytes));
  return create(ModelDirSchema, { path: dir.path, shared: dir.shared, ...known({ freeBytes }) });
}

export function encodeModelFile(file: FoundFile): ModelFile {
  return create(ModelFileSchema, { path: file.path, sizeBytes: BigInt(file.sizeBytes) });
}

/** What a shard takes of its node, and its place among the node's GPUs. */
export interface ShardTakes {
  readonly shardId: string;
  readonly taken: Taken;
  /** UUIDs. */
  readonly gpus: readonly string[];
}

/** `gpus` are the node's, as they are told now. */
export function encodeNodeLoad(
  host: HostLoad,
  shards: readonly ShardTakes[],
  gpus: readonly Gpu[],
): NodeLoad {
  const { load1m, memoryAvailableBytes: available } = host;
  return create(NodeLoadSchema, {
    ...known({
      load1m,
      memoryAvailableBytes: available === undefined ? undefined : BigInt(Math.floor(available)),
    }),
    shards: shards.map((shard) => {
      const own = gpus.filter(({ uuid }) => shard.gpus.includes(uuid));
      const used = total(own.map(({ memoryUsedMib }) => memoryUsedMib));
      const busy = own.flatMap(({ utilizationPercent }) => utilizationPercent ?? []);
      const { cpuPercent, memoryBytes } = shard.taken;
      return create(ShardUsageSchema, {
        shardId: shard.shardId,
        ...known({
          cpuPercent,
          memoryBytes: memoryBytes === undefined ? undefined : BigInt(Math.floor(memoryBytes)),
          gpuMemoryMib: used,
          gpuUtilizationPercent: busy.length === 0
            ? undefined
            : Math.round(busy.reduce((sum, each) => sum + each, 0) / busy.length),
        }),
      });
    }),
  });
}

export function encodeProblem(problem: Problem): ProblemMessage {
  return create(ProblemSchema, {
    reason: problem.reason,
    detail: problem.detail,
    remedy: problem.remedy,
  });
}

type Known<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** Without the fields that are undefined: absent is how a message says unknown. */
function known<T extends Readonly<Record<string, unknown>>>(fields: T): Known<T> {
  const result: Known<T> = {};
  for (const key in fields) {
    const value = fields[key];
    if (isKnown(value)) result[key] = value;
  }
  return result;
}

function isKnown<T>(value: T): value is Exclude<T, undefined> {
  return value !== undefined;
}
