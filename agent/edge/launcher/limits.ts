/** Limits of this node that only a shell can read: Deno opens nothing below /dev. */
import { MEMLOCK_BYTES_MIN } from "../../core/diagnosis/evidence.ts";
import type { LauncherKind } from "./choose.ts";
import { callShim } from "./shim.ts";

/** What is absent is unknown. */
export interface NodeLimits {
  readonly shmTotalBytes?: number;
  readonly shmFreeBytes?: number;
  /** Bytes that an engine may lock; Infinity: no limit. */
  readonly memlockBytes?: number;
}

/** Reads them now. Throws `system` when the shim cannot be run. */
export async function readLimits(shim: string): Promise<NodeLimits> {
  return limitsOf((await callShim(shim, ["limits"])).lines);
}

/**
 * What a running process may lock, whoever gave it that: its launcher, a drop-in, or a systemd that may
 * not raise limits. Undefined: it is gone, or cannot be looked at. Throws as `readLimits` does.
 */
export async function readMemlock(shim: string, pid: number): Promise<number | undefined> {
  return limitsOf((await callShim(shim, ["limits", String(pid)])).lines).memlockBytes;
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
    // Such a process may lock whatever it wants, whatever the limit says.
    if (line === "ipc-lock") limits = { ...limits, memlockBytes: Infinity };
  }
  return limits;
}

/** NCCL and the workers of one engine share memory there; containers begin with 64 MiB. */
const SHM_BYTES_MIN = 1024 ** 3;

const MEMLOCK_REMEDIES: Readonly<Record<LauncherKind, string>> = {
  process: "Set LimitMEMLOCK=infinity for the agent, in a container --ulimit memlock=-1, or use " +
    "launcher: systemd",
  systemd: "Their units ask for LimitMEMLOCK=infinity: look for a drop-in that says otherwise " +
    "(systemctl show -p LimitMEMLOCK,DropInPaths of the engine's unit), and in a container for " +
    "CAP_SYS_RESOURCE, without which systemd itself cannot raise a limit",
};

/** What of it may fail a shard of so many GPUs, in words; unknown is no complaint. */
export function limitWarnings(
  { shmFreeBytes, shmTotalBytes = 0 }: NodeLimits,
  { gpus }: { readonly gpus: number },
): readonly string[] {
  if (gpus <= 1 || shmFreeBytes === undefined || shmFreeBytes >= SHM_BYTES_MIN) return [];
  return [
    `/dev/shm has ${mib(shmFreeBytes)} of ${mib(shmTotalBytes)} MiB free, and engines on several ` +
    `GPUs share memory there: ${mib(SHM_BYTES_MIN)} MiB free would be enough. Enlarge it ` +
    "(mount -o remount,size=… /dev/shm, in a container --shm-size), or delete what dead engines " +
    "left in it",
  ];
}

/** The same of what an engine that uses adapters may lock. */
export function memlockWarning(
  memlockBytes: number | undefined,
  launcher: LauncherKind,
): string | undefined {
  if (memlockBytes === undefined || memlockBytes >= MEMLOCK_BYTES_MIN) return undefined;
  return `The engine may lock ${
    mib(memlockBytes)
  } MiB of memory, and RDMA pins what it registers: ` +
    `${mib(MEMLOCK_BYTES_MIN)} MiB would be enough. ${MEMLOCK_REMEDIES[launcher]}`;
}

function kib(text: string): number {
  return Number(text) * 1024;
}

function mib(bytes: number): number {
  return Math.floor(bytes / 1024 ** 2);
}
