/**
 * Which GPUs of a node a shard gets. A tensor-parallel group stays inside one NVLink clique when one
 * is large enough, in the smallest that is, so that large cliques stay whole for who needs them;
 * within it, near the adapters of the replica's fabric, and on one NUMA node where that is possible.
 */
import type { Plain } from "@heddle/proto/plain";
import type { Gpu, Hca } from "@heddle/proto/gen/types";

export interface GpuChoice {
  /** Groups one after the other, each by index. */
  readonly gpus: readonly Plain<Gpu>[];
  /** Groups that lie inside one clique, of all groups; 1 for groups of a single GPU. */
  readonly linkedShare: number;
}

/** Groups of GPUs that a shard needs, and the adapters that they would talk through. */
export interface GpuWish {
  /** GPUs of one group. */
  readonly size: number;
  readonly groups: number;
  /** Usable ports of the replica's fabric; empty for a replica on one node. */
  readonly hcas: readonly Plain<Hca>[];
}

/** Chooses the groups; undefined when `free` has too few. */
export function chooseGpus(
  free: readonly Plain<Gpu>[],
  { size, groups, hcas }: GpuWish,
): GpuChoice | undefined {
  if (free.length < size * groups) return undefined;
  const near = nearTo(hcas);
  let left = free.toSorted(byIndex);
  const chosen: Plain<Gpu>[] = [];
  let linked = 0;
  for (let group = 0; group < groups; group++) {
    const clique = best(
      byClique(left),
      size,
      (a, b) => a.length - b.length || nearest(near, size)(a, b),
    );
    const picked = pickNear(clique ?? left, size, near);
    if (clique !== undefined) linked++;
    chosen.push(...picked);
    const taken = new Set(picked);
    left = left.filter((gpu) => !taken.has(gpu));
  }
  return { gpus: chosen, linkedShare: groups === 0 ? 1 : linked / groups };
}

/**
 * Whether a GPU is on the NUMA node of one of these adapters. One whose NUMA node is unknown is near
 * all, and so is everything while an adapter's is unknown, or where there is none.
 */
export function nearTo(hcas: readonly Plain<Hca>[]): (gpu: Plain<Gpu>) => boolean {
  const numas = hcas.map(({ numaNode }) => known(numaNode));
  if (numas.length === 0 || numas.includes(undefined)) return () => true;
  return (gpu) => {
    const numa = known(gpu.numaNode);
    return numa === undefined || numas.includes(numa);
  };
}

/** Share of GPUs that are on the same NUMA node as most of them; 1 when nothing is known. */
export function numaShare(gpus: readonly Plain<Gpu>[]): number {
  const told = gpus.filter((gpu) => known(gpu.numaNode) !== undefined);
  if (told.length === 0) return 1;
  const sizes = [...groupBy(told, (gpu) => `${gpu.numaNode}`).values()].map((gpus) => gpus.length);
  return Math.max(...sizes) / told.length;
}

/** GPUs near the adapters before others, and of one NUMA node rather than of several. */
function pickNear(
  from: readonly Plain<Gpu>[],
  size: number,
  near: (gpu: Plain<Gpu>) => boolean,
): readonly Plain<Gpu>[] {
  const nearFirst = from.toSorted((a, b) => Number(near(b)) - Number(near(a)));
  const count = Math.min(size, from.filter(near).length);
  const together = best(
    groupBy(from, (gpu) => `${known(gpu.numaNode) ?? "unknown"}`),
    size,
    (a, b) => nearest(near, size)(a, b) || a.length - b.length,
  );
  if (together === undefined || together.filter(near).length < count) {
    return nearFirst.slice(0, size).toSorted(byIndex);
  }
  return together.slice(0, size);
}

/** GPUs by clique. One in no clique, or whose links are unknown, is a clique of its own. */
function byClique(gpus: readonly Plain<Gpu>[]): ReadonlyMap<string, readonly Plain<Gpu>[]> {
  return groupBy(
    gpus,
    (gpu) => gpu.nvlinkClique === undefined ? `alone ${gpu.uuid}` : `${gpu.nvlinkClique}`,
  );
}

type Order = (a: readonly Plain<Gpu>[], b: readonly Plain<Gpu>[]) => number;

/** Of the groups that are large enough, the first in this order. */
function best(
  groups: ReadonlyMap<string, readonly Plain<Gpu>[]>,
  size: number,
  order: Order,
): readonly Plain<Gpu>[] | undefined {
  return [...groups.values()]
    .filter((group) => group.length >= size)
    .sort((a, b) => order(a, b) || (a[0]?.index ?? 0) - (b[0]?.index ?? 0))[0];
}

/** Groups with more GPUs near the adapters first, as far as so many are wanted. */
function nearest(near: (gpu: Plain<Gpu>) => boolean, size: number): Order {
  const share = (group: readonly Plain<Gpu>[]) => Math.min(size, group.filter(near).length);
  return (a, b) => share(b) - share(a);
}

function known(numaNode: number | undefined): number | undefined {
  return numaNode === undefined || numaNode < 0 ? undefined : numaNode;
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
