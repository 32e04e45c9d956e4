/** Which replica has which GPU. */
import type { ReplicaItem } from "../edge/console/wire.ts";

/** By node and index. What has stopped holds nothing, and what is attached none that is shown. */
export function holdersOf(
  replicas: ReadonlyMap<string, ReplicaItem>,
): ReadonlyMap<string, ReadonlyMap<number, string>> {
  const holders = new Map<string, Map<number, string>>();
  for (const [id, { shards, attached }] of replicas) {
    if (attached !== undefined) continue;
    for (const { node, gpus, state } of shards) {
      if (state === "stopped" || state === "failed") continue;
      const there = holders.get(node) ?? new Map<number, string>();
      for (const gpu of gpus) there.set(gpu, id);
      holders.set(node, there);
    }
  }
  return holders;
}
