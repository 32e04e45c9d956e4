/** Room on the disk that weights are fetched to: checked before, and again and again meanwhile. */
import { statfs } from "node:fs/promises";
import type { FetchRequest } from "../../../core/weights/documents.ts";
import { WeightsError } from "../../../core/weights/failure.ts";
import { delay, spawnTask } from "@heddle/common/task";

const GIB = 1024 ** 3;

/** What is asked of the disk. */
export interface Disk {
  /** At 10 GB/s a disk loses 20 GB in 2 s: less than what is usually kept free. */
  readonly lookMs: number;
  /** Undefined: the file system does not say. */
  freeBytes(folder: string): Promise<number | undefined>;
}

const REAL: Disk = {
  lookMs: 2_000,
  async freeBytes(folder) {
    const { bavail, bsize, blocks } = await statfs(folder);
    const free = bavail * bsize;
    return Number.isFinite(free) && blocks > 0 ? free : undefined;
  },
};

export interface DiskWatch {
  readonly request: FetchRequest;
  readonly signal: AbortSignal;
  /** Aborted, with the error, when the disk becomes short. */
  readonly onShort: AbortController;
  readonly disk?: Disk;
}

/** Throws `disk_full` when there is no room now; goes on looking until the signal aborts. */
export async function watchDisk(
  folder: string,
  lackingBytes: () => number,
  { request, signal, onShort, disk = REAL }: DiskWatch,
): Promise<void> {
  const { reserve_bytes: reserve } = request;
  const short = shortage(folder, await disk.freeBytes(folder), {
    needBytes: lackingBytes(),
    reserveBytes: reserve,
  });
  if (short !== undefined) throw short;
  spawnTask("disk", async () => {
    while (!signal.aborted) {
      await delay(disk.lookMs, signal);
      if (signal.aborted) return;
      // Somebody else may fill the disk: then what is left of it is left to them.
      const free = await disk.freeBytes(folder);
      const full = shortage(folder, free, { needBytes: 0, reserveBytes: reserve });
      if (full !== undefined) onShort.abort(full);
    }
  }, signal);
}

function shortage(
  folder: string,
  free: number | undefined,
  { needBytes, reserveBytes }: { readonly needBytes: number; readonly reserveBytes: number },
): WeightsError | undefined {
  if (free === undefined || free >= needBytes + reserveBytes) return undefined;
  const need = needBytes > 0
    ? `${gib(needBytes)} are still to be fetched`
    : "the fetch was stopped";
  return new WeightsError(
    "disk_full",
    `The disk of ${folder} has ${gib(free)} free: ${need}, and ${gib(reserveBytes)} stay free ` +
      "(weights.reserve). Remove weights that nobody uses (ctl weights list), or use a larger disk",
  );
}

function gib(bytes: number): string {
  return `${(bytes / GIB).toFixed(1)} GiB`;
}
