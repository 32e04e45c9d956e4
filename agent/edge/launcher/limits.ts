/** Limits of this node that only a shell can read: Deno opens nothing below /dev. */
import { join } from "node:path";
import { HeddleError } from "@heddle/proto/error";
import { MEMLOCK_BYTES_MIN } from "../../core/diagnosis/evidence.ts";
import { probeAsUnit } from "./probe_unit.ts";
import type { LauncherKind } from "./choose.ts";
import { callShim } from "./shim.ts";

/** What is absent is unknown. */
export interface NodeLimits {
  readonly shmTotalBytes?: number;
  readonly shmFreeBytes?: number;
  /** Bytes that an engine may lock; Infinity: no limit. */
  readonly memlockBytes?: number;
}

/** Who engines are started by. */
export interface LimitsOf {
  /** Absolute path of heddle-shim. */
  readonly shim: string;
  /** Where engines are units: the user they run as, and where a unit's environment may be written. */
  readonly unit?: { readonly user: string; readonly stateDirectory: string };
}

const PROBE_SECONDS_MAX = 4;

/**
 * Reads them now, as an engine has them: where engines are units, memlock is what such a unit is really
 * given, drop-ins and what systemd itself may not exceed included. Throws `system` when the shim cannot
 * be run.
 */
export async function readLimits({ shim, unit }: LimitsOf): Promise<NodeLimits> {
  const own = limitsOf((await callShim(shim, ["limits"])).lines);
  if (unit === undefined) return own;
  const { memlockBytes: _ofAgent, ...rest } = own;
  const ofUnit = await limitsOfUnit(shim, unit);
  return ofUnit.memlockBytes === undefined ? rest : { ...rest, memlockBytes: ofUnit.memlockBytes };
}

// A unit that cannot be asked says nothing: its engine will say more.
async function limitsOfUnit(
  shim: string,
  { user, stateDirectory }: NonNullable<LimitsOf["unit"]>,
): Promise<NodeLimits> {
  try {
    const said = await probeAsUnit({
      path: shim,
      versionArgs: ["limits"],
      env: {},
      user,
      envFile: join(stateDirectory, "limits.env"),
      secondsMax: PROBE_SECONDS_MAX,
      signal: new AbortController().signal,
    });
    return limitsOf(said.split("\n"));
  } catch (error) {
    if (error instanceof HeddleError) return {};
    throw error;
  }
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

/** What of it may fail a shard of so many GPUs and adapters, in words; unknown is no complaint. */
export function limitWarnings(
  limits: NodeLimits,
  shard: { readonly gpus: number; readonly hcas: number; readonly launcher: LauncherKind },
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
    ...(shard.hcas > 0 && memlockBytes !== undefined &&
        memlockBytes < MEMLOCK_BYTES_MIN
      ? [
        `Engines may lock ${mib(memlockBytes)} MiB of memory, and RDMA pins what it registers: ` +
        `${mib(MEMLOCK_BYTES_MIN)} MiB would be enough. ${MEMLOCK_REMEDIES[shard.launcher]}`,
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
