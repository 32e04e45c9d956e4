/** Facts about a failure that no log of the engine has. What is absent is unknown. */
import type { GpuUse } from "../gpu/gpu_release.ts";
import type { XidVerdict } from "../health/xid.ts";

export interface Evidence {
  readonly exit?: {
    /** As a shell counts it: 128 + N for signal N. */
    readonly code?: number | undefined;
    /** "SIGKILL"; empty when the process exited by itself. */
    readonly signal: string;
    readonly outOfMemory: boolean;
  };
  /** The shard's GPUs. */
  readonly gpus?: readonly Omit<GpuUse, "uuid">[];
  /** Free bytes of where weights and caches lie. */
  readonly diskFreeBytes?: number;
  readonly shmFreeBytes?: number;
  /** Bytes that the engine could lock; Infinity: no limit. */
  readonly memlockBytes?: number;
  /** It was given RDMA adapters, for which it has to lock much. */
  readonly usesAdapters?: boolean;
  /** What the kernel logged of the shard's GPUs while it ran, oldest first. */
  readonly gpuFaults?: readonly GpuFault[];
}

export interface GpuFault {
  readonly index: number;
  /** Undefined: it fell off the bus without an Xid. */
  readonly xid: number | undefined;
  readonly verdict: XidVerdict;
  readonly text: string;
}

/** A GPU in trouble logs many; these tell. */
const FAULTS_TOLD_MAX = 3;

/** What the kernel said, the gravest first. */
export function faultWords({ gpuFaults = [] }: Evidence): readonly string[] {
  const graves = gpuFaults.filter(isGrave);
  return [...graves, ...gpuFaults.filter((fault) => !isGrave(fault))].slice(0, FAULTS_TOLD_MAX)
    .map(({ index, xid, text }) =>
      `The kernel logged of GPU ${index}: ${xid === undefined ? "" : `Xid ${xid}, `}${text}`
    );
}

/** True for a fault of the GPU or its links, not of the program that used it. */
export function isGrave({ verdict }: GpuFault): boolean {
  return verdict === "out" || verdict === "nvlink";
}

/** RDMA pins what it registers, which is gigabytes. */
export const MEMLOCK_BYTES_MIN = 16 * 1024 ** 3;

/** Below this much an engine can create nothing of use there. */
const FULL_BYTES = 64 * 1024 * 1024;

/** Which of the two places is full; undefined: neither, both, or unknown. */
export function fullPlace(
  { diskFreeBytes, shmFreeBytes }: Evidence,
): "disk" | "shm" | undefined {
  const disk = diskFreeBytes !== undefined && diskFreeBytes < FULL_BYTES;
  const shm = shmFreeBytes !== undefined && shmFreeBytes < FULL_BYTES;
  return disk === shm ? undefined : disk ? "disk" : "shm";
}

/** Says who uses the GPUs, as far as it is known. */
export function gpuWords(gpus: readonly Omit<GpuUse, "uuid">[]): readonly string[] {
  return gpus.flatMap(({ index, usedMib, totalMib, holders }) => {
    if (usedMib === undefined) return [];
    const of = totalMib === undefined ? "" : ` of ${totalMib}`;
    const by = holders.length === 0
      ? ""
      : `, held by ${holders.map(({ pid, name }) => `pid ${pid} (${name})`).join(", ")}`;
    return [`GPU ${index} now has ${usedMib}${of} MiB in use${by}`];
  });
}

export function spaceWords({ diskFreeBytes, shmFreeBytes }: Evidence): readonly string[] {
  return [
    ...(diskFreeBytes === undefined ? [] : [`${mib(diskFreeBytes)} MiB of disk are free`]),
    ...(shmFreeBytes === undefined ? [] : [`${mib(shmFreeBytes)} MiB of /dev/shm are free`]),
  ];
}

/** Whether engines may lock as much as RDMA pins; undefined: not known. */
export function memlockSuffices({ memlockBytes }: Evidence): boolean | undefined {
  return memlockBytes === undefined ? undefined : memlockBytes >= MEMLOCK_BYTES_MIN;
}

export function memlockWords({ memlockBytes }: Evidence): readonly string[] {
  if (memlockBytes === undefined) return [];
  if (memlockBytes === Infinity) return ["It could lock memory without a limit"];
  return [`It could lock ${kib(memlockBytes)} KiB of memory`];
}

function kib(bytes: number): number {
  return Math.floor(bytes / 1024);
}

function mib(bytes: number): number {
  return Math.floor(bytes / 1024 ** 2);
}
