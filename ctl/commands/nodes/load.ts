/** How busy a node is, and what a shard takes of it, in the words of a table. */
import type { NodeView } from "@heddle/proto/gen/admin";
import type { ShardUsage } from "@heddle/proto/gen/types";

/** "12.5/64": processes that ran or waited over the last minute, of the node's CPUs. */
export function loadWords({ inventory }: NodeView): string {
  const load = inventory?.load?.load1m;
  return load === undefined ? "" : `${load.toFixed(1)}/${inventory?.cpuCount ?? "?"}`;
}

/** "410/512 GiB": memory that is left, of all. */
export function memoryWords({ inventory }: NodeView): string {
  const free = inventory?.load?.memoryAvailableBytes;
  if (free === undefined) return "";
  const all = inventory?.memoryBytes;
  return all === undefined ? `${gib(free)} GiB` : `${gib(free)}/${gib(all)} GiB`;
}

/** "cpu 250% mem 12 GiB gpu 97% 140 GiB"; what is unknown is left out. */
export function usageWords(usage: ShardUsage | undefined): string {
  if (usage === undefined) return "";
  const { cpuPercent, memoryBytes, gpuMemoryMib, gpuUtilizationPercent } = usage;
  const gpu = [
    ...(gpuUtilizationPercent === undefined ? [] : [`${gpuUtilizationPercent}%`]),
    ...(gpuMemoryMib === undefined ? [] : [`${gib(BigInt(gpuMemoryMib) * 1024n ** 2n)} GiB`]),
  ];
  return [
    ...(cpuPercent === undefined ? [] : [`cpu ${Math.round(cpuPercent)}%`]),
    ...(memoryBytes === undefined ? [] : [`mem ${gib(memoryBytes)} GiB`]),
    ...(gpu.length === 0 ? [] : [`gpu ${gpu.join(" ")}`]),
  ].join(" ");
}

/** What shards take of their nodes, by the shard's id. */
export function usagesOf(nodes: readonly NodeView[]): ReadonlyMap<string, ShardUsage> {
  return new Map(
    nodes.flatMap(({ inventory }) => inventory?.load?.shards ?? [])
      .map((usage) => [usage.shardId, usage]),
  );
}

function gib(bytes: bigint): string {
  const value = Number(bytes) / 1024 ** 3;
  return value < 10 ? value.toFixed(1) : String(Math.round(value));
}
