/** Looks for the facts about a failed shard that its log does not have. */
import { statfs } from "node:fs/promises";
import { readLimits } from "../edge/launcher/limits.ts";
import type { Evidence } from "../core/diagnosis/evidence.ts";
import type { Shard } from "../core/shard/shard.ts";
import type { Discovery } from "../inventory.ts";

/** A failure is told soon, also when a driver or a disk hangs. */
const LOOK_MS_MAX = 5_000;

/** Never rejects; what cannot be known within a few seconds is left out. */
export async function evidenceOf(
  { spec }: Shard,
  where: {
    readonly discovery: Pick<Discovery, "gpuUses">;
    readonly folder: string;
    readonly shim: string;
  },
  signal: AbortSignal,
): Promise<Evidence> {
  const [uses, diskFreeBytes, shmFreeBytes] = await Promise.all([
    spec.gpus.length === 0 ? undefined : inTime(where.discovery.gpuUses(signal)),
    inTime(freeBytes(where.folder)),
    inTime(readLimits(where.shim)).then((limits) => limits?.shmFreeBytes),
  ]);
  const gpus = uses?.filter(({ uuid }) => spec.gpus.some((gpu) => gpu.uuid === uuid));
  return {
    ...(gpus === undefined ? {} : { gpus }),
    ...(diskFreeBytes === undefined ? {} : { diskFreeBytes }),
    ...(shmFreeBytes === undefined ? {} : { shmFreeBytes }),
  };
}

async function freeBytes(path: string): Promise<number> {
  const { bavail, bsize } = await statfs(path);
  return bavail * bsize;
}

/** What `work` gives, or undefined when it fails or takes more than a few seconds. */
export async function inTime<T>(work: Promise<T>): Promise<T | undefined> {
  const late = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => late.resolve(undefined), LOOK_MS_MAX);
  try {
    return await Promise.race([work, late.promise]);
  } catch {
    // Not readable for the agent, or not there: unknown.
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}
