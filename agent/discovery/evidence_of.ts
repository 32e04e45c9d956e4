/** Looks for the facts about a failed shard that its log does not have. */
import { statfs } from "node:fs/promises";
import { readLimits } from "../edge/launcher/limits.ts";
import type { Evidence } from "../core/diagnosis/evidence.ts";
import type { Gpu } from "@heddle/proto/gen/types";
import type { Shard } from "../core/shard/shard.ts";
import type { Discovery } from "../inventory.ts";

/** A failure is told soon, also when a driver or a disk hangs. */
const LOOK_MS_MAX = 5_000;

/** A GPU may fail a moment before its engine is asked to do anything. */
const FAULT_LEAD_MS = 5_000;

/** Never rejects; what cannot be known within a few seconds is left out. */
export async function evidenceOf(
  { spec, since }: Shard,
  where: {
    readonly discovery: Pick<Discovery, "gpuUses" | "kernelFaultsSince">;
    /** The node's GPUs as last seen. */
    readonly gpus: readonly Pick<Gpu, "index" | "uuid" | "pciBusId">[];
    readonly folder: string;
    readonly shim: string;
    /** Bytes that engines of a shard could lock; undefined: not known. */
    readonly memlock: { of(shardId: string): number | undefined };
  },
  signal: AbortSignal,
): Promise<Evidence> {
  const [uses, diskFreeBytes, shmFreeBytes] = await Promise.all([
    spec.gpus.length === 0 ? undefined : inTime(where.discovery.gpuUses(signal)),
    inTime(freeBytes(where.folder)),
    inTime(readLimits(where.shim)).then((limits) => limits?.shmFreeBytes),
  ]);
  const memlockBytes = where.memlock.of(spec.shardId);
  const gpus = uses?.filter(({ uuid }) => spec.gpus.some((gpu) => gpu.uuid === uuid));
  const own = where.gpus.filter(({ uuid }) => spec.gpus.some((gpu) => gpu.uuid === uuid));
  // The shard is as it was when its processes began to be watched.
  const gpuFaults = where.discovery.kernelFaultsSince(since - FAULT_LEAD_MS).flatMap((fault) => {
    const gpu = own.find(({ pciBusId }) => pciBusId === fault.pciAddress);
    const { xid, verdict, text } = fault;
    return gpu === undefined ? [] : [{ index: gpu.index, xid, verdict, text }];
  });
  return {
    ...(gpuFaults.length === 0 ? {} : { gpuFaults }),
    ...(gpus === undefined ? {} : { gpus }),
    ...(diskFreeBytes === undefined ? {} : { diskFreeBytes }),
    ...(shmFreeBytes === undefined ? {} : { shmFreeBytes }),
    ...(memlockBytes === undefined ? {} : { memlockBytes }),
    usesAdapters: spec.hcas.length > 0,
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
