/**
 * Which GPUs of a node a shard gets. A tensor-parallel group stays inside one NVLink clique when one
 * is large enough, in the smallest that is, so that large cliques stay whole for who needs them;
 * within it, on one NUMA node where that is possible.
 */
import type { Plain } from "@heddle/proto/plain";
import type { Gpu } from "@heddle/proto/gen/types";

export interface GpuChoice {
  /** Groups one after the other, each by index. */
  readonly gpus: readonly Plain<Gpu>[];
  /** Groups that lie inside one clique, of all groups; 1 for groups of a single GPU. */
  readonly linkedShare: number;
}

/** Chooses `groups` groups of `size`; undefined when `free` has too few. */
export function chooseGpus(
  free: readonly Plain<Gpu>[],
  size: number,
  groups: number,
): GpuChoice | undefined {
  if (free.length < size * groups) return undefined;
  let left = free.toSorted(byIndex);
  const chosen: Plain<Gpu>[] = [];
  let linked = 0;
  for (let group = 0; group < groups; group++) {
    const clique = smallestEnough(byClique(left), size);
    const picked = pickNear(clique ?? left, size);
    if (clique !== undefined) linked++;
    chosen.push(...picked);
    const taken = new Set(picked);
    left = left.filter((gpu) => !taken.has(gpu));
  }
  return { gpus: chosen, linkedShare: groups === 0 ? 1 : linked / groups };
}

/** Share of GPUs that are on the same NUMA node as most of them; 1 when nothing is known. */
export function numaShare(gpus: readonly Plain<Gpu>[]): number {
  const known = gpus.filter((gpu) => gpu.numaNode !== undefined && gpu.numaNode >= 0);
  if (known.length === 0) return 1;
  const sizes = [...groupBy(known, (gpu) => `${gpu.numaNode}`).values()].map((gpus) => gpus.length);
  return Math.max(...sizes) / known.length;
}

function pickNear(from: readonly Plain<Gpu>[], size: number): readonly Plain<Gpu>[] {
  const near = smallestEnough(groupBy(from, (gpu) => `${gpu.numaNode ?? "unknown"}`), size);
  return (near ?? from).slice(0, size);
}

/** GPUs by clique. One in no clique, or whose links are unknown, is a clique of its own. */
function byClique(gpus: readonly Plain<Gpu>[]): ReadonlyMap<string, readonly Plain<Gpu>[]> {
  return groupBy(
    gpus,
    (gpu) => gpu.nvlinkClique === undefined ? `alone ${gpu.uuid}` : `${gpu.nvlinkClique}`,
  );
}

function smallestEnough(
  groups: ReadonlyMap<string, readonly Plain<Gpu>[]>,
  size: number,
): readonly Plain<Gpu>[] | undefined {
  return [...groups.values()]
    .filter((group) => group.length >= size)
    .sort((a, b) => a.length - b.length || (a[0]?.index ?? 0) - (b[0]?.index ?? 0))[0];
}

function groupBy(
  gpus: readonly Plain<Gpu>[],
  key: (gpu: Plain<Gpu>) => string,
): ReadonlyMap<string, readonly Plain<Gpu>[]> {
  return Map.groupBy(gpus, key);
}

function byIndex(a: Plain<Gpu>, b: Plain<Gpu>): number {
  return a.index - b.index;
}
