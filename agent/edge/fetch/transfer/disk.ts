/** Room on the disk that weights are fetched to: checked before, and again and again meanwhile. */
import { statfs } from "node:fs/promises";
import type { FetchRequest } from "../../../core/weights/documents.ts";
import { WeightsError } from "../../../core/weights/failure.ts";
import { delay, spawnTask } from "@heddle/common/task";

/** At 10 GB/s a disk loses 20 GB between two looks: less than what is usually kept free. */
const LOOK_MS = 2_000;
const GIB = 1024 ** 3;

export interface DiskWatch {
  readonly request: FetchRequest;
  readonly signal: AbortSignal;
  /** Aborted, with the error, when the disk becomes short. */
  readonly onShort: AbortController;
}

/** Throws `disk_full` when there is no room now; goes on looking until the signal aborts. */
export async function watchDisk(
  folder: string,
  lackingBytes: () => number,
  { request, signal, onShort }: DiskWatch,
): Promise<void> {
  const { reserve_bytes: reserve } = request;
  const short = await shortage(folder, lackingBytes(), reserve);
  if (short !== undefined) throw short;
  spawnTask("disk", async () => {
    while (!signal.aborted) {
      await delay(LOOK_MS, signal);
      // Somebody else may fill the disk: then what is left of it is left to them.
      const full = signal.aborted ? undefined : await shortage(folder, 0, reserve);
      if (full !== undefined) onShort.abort(full);
    }
  }, signal);
}

async function shortage(
  folder: string,
  needBytes: number,
  reserveBytes: number,
): Promise<WeightsError | undefined> {
  const stat = await statfs(folder);
  const free = stat.bavail * stat.bsize;
  // A file system that does not say is taken at its word.
  if (!Number.isFinite(free) || stat.blocks === 0 || free >= needBytes + reserveBytes) {
    return undefined;
  }
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
