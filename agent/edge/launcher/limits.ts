/** Limits of this node that only a shell can read: Deno opens nothing below /dev. */
import { callShim } from "./shim.ts";

/** What is absent is unknown. */
export interface NodeLimits {
  readonly shmTotalBytes?: number;
  readonly shmFreeBytes?: number;
  /** Bytes that a process started by the agent may lock; Infinity: no limit. */
  readonly memlockBytes?: number;
}

/** Reads them now. Throws `system` when the shim cannot be run. */
export async function readLimits(shim: string): Promise<NodeLimits> {
  return limitsOf((await callShim(shim, ["limits"])).lines);
}

/** Reads the shim's lines; anything else is passed over. */
export function limitsOf(lines: readonly string[]): NodeLimits {
  let limits: NodeLimits = {};
  for (const line of lines) {
    const [, total, free] = /^shm (\d{1,12}) (\d{1,12})$/.exec(line) ?? [];
    if (total !== undefined && free !== undefined) {
      limits = { ...limits, shmTotalBytes: kib(total), shmFreeBytes: kib(free) };
    }
    const locked = /^memlock (\d{1,15}|unlimited)$/.exec(line)?.[1];
    if (locked !== undefined) {
      limits = { ...limits, memlockBytes: locked === "unlimited" ? Infinity : kib(locked) };
    }
  }
  return limits;
}

/** NCCL and the workers of one engine share memory there; containers begin with 64 MiB. */
const SHM_BYTES_MIN = 1024 ** 3;
/** RDMA pins what it registers, which is gigabytes. */
const MEMLOCK_BYTES_MIN = 16 * 1024 ** 3;

/** What of it may fail a shard of so many GPUs and adapters, in words; unknown is no complaint. */
export function limitWarnings(
  limits: NodeLimits,
  shard: { readonly gpus: number; readonly hcas: number; readonly ownMemlock: boolean },
): readonly string[] {
  const { shmFreeBytes, shmTotalBytes = 0, memlockBytes } = limits;
  return [
    ...(shard.gpus > 1 && shmFreeBytes !== undefined && shmFreeBytes < SHM_BYTES_MIN
      ? [
        `/dev/shm has ${mib(shmFreeBytes)} of ${
          mib(shmTotalBytes)
        } MiB free, and engines on several ` +
        `GPUs share memory there: ${mib(SHM_BYTES_MIN)} MiB free would be enough. Enlarge it ` +
        "(mount -o remount,size=… /dev/shm, in a container --shm-size), or delete what dead engines " +
        "left in it",
      ]
      : []),
    ...(shard.hcas > 0 && !shard.ownMemlock && memlockBytes !== undefined &&
        memlockBytes < MEMLOCK_BYTES_MIN
      ? [
        `Engines may lock ${mib(memlockBytes)} MiB of memory, and RDMA pins what it registers: ` +
        `${
          mib(MEMLOCK_BYTES_MIN)
        } MiB would be enough. Set LimitMEMLOCK=infinity for the agent, or ` +
        "use launcher: systemd",
      ]
      : []),
  ];
}

function kib(text: string): number {
  return Number(text) * 1024;
}

function mib(bytes: number): number {
  return Math.floor(bytes / 1024 ** 2);
}
