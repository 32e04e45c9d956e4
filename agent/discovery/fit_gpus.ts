/** What is known of a shard's GPUs before it is started. */
import type { Gpu } from "@heddle/proto/gen/types";
import type { FitGpu } from "@heddle/common/model/fits";
import type { Shard } from "../core/shard/shard.ts";
import { inTime } from "./evidence_of.ts";
import type { Discovery } from "../inventory.ts";

/**
 * Never rejects. Used memory is of a look that begins now: what ended a moment ago must not count. A
 * GPU that discovery has not seen is left out.
 */
export async function fitGpus(
  { spec }: Shard,
  seen: readonly Gpu[],
  discovery: Pick<Discovery, "gpuUses">,
  signal: AbortSignal,
): Promise<readonly FitGpu[]> {
  if (spec.gpus.length === 0) return [];
  const uses = await inTime(discovery.gpuUses(signal));
  return spec.gpus.flatMap(({ uuid }) => {
    const gpu = seen.find((each) => each.uuid === uuid);
    if (gpu === undefined) return [];
    const { index, gpuClass, memoryTotalMib, computeCapability } = gpu;
    const usedMib = uses?.find((use) => use.uuid === uuid)?.usedMib;
    return [{
      index,
      gpuClass,
      ...(memoryTotalMib === undefined ? {} : { totalMib: memoryTotalMib }),
      ...(usedMib === undefined ? {} : { usedMib }),
      ...(computeCapability === undefined ? {} : { computeCapability }),
    }];
  });
}
