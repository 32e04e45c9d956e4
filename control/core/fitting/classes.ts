/** The GPU classes of a fleet, and what of a model fits on each. */
import type { Plain } from "@heddle/proto/plain";
import type { Inventory } from "@heddle/proto/gen/types";
import type { SourceFacts } from "@heddle/proto/gen/weights";
import { contextOn, type GpuNeed } from "./memory.ts";

export interface FleetClass {
  readonly gpuClass: string;
  /** Of its smallest GPU. */
  readonly memoryMib: number;
  /** Most GPUs of it on one node. */
  readonly gpusMax: number;
}

export interface ClassFitting extends FleetClass {
  readonly contexts: readonly { readonly tp: number; readonly tokens: number | undefined }[];
}

/** Every class that some node has, by name. */
export function fleetClasses(inventories: Iterable<Plain<Inventory>>): readonly FleetClass[] {
  const classes = new Map<string, FleetClass>();
  for (const { gpus } of inventories) {
    for (const gpuClass of new Set(gpus.map((gpu) => gpu.gpuClass).filter((name) => name !== ""))) {
      const own = gpus.filter((gpu) => gpu.gpuClass === gpuClass);
      const known = classes.get(gpuClass);
      classes.set(gpuClass, {
        gpuClass,
        memoryMib: Math.min(
          known?.memoryMib ?? Infinity,
          ...own.map(({ memoryTotalMib }) => memoryTotalMib ?? Infinity),
        ),
        gpusMax: Math.max(known?.gpusMax ?? 0, own.length),
      });
    }
  }
  return [...classes.values()].filter(({ memoryMib }) => Number.isFinite(memoryMib))
    .sort((a, b) => a.gpuClass < b.gpuClass ? -1 : 1);
}

/** Longest contexts on each class, for groups that one of its nodes has GPUs for. */
export function fitOnClasses(
  facts: Plain<SourceFacts>,
  needs: readonly GpuNeed[],
  classes: readonly FleetClass[],
): readonly ClassFitting[] {
  return classes.map((each) => ({
    ...each,
    contexts: needs.filter(({ tp }) => tp <= each.gpusMax).map((need) => ({
      tp: need.tp,
      tokens: contextOn(facts, need.tp, each.memoryMib),
    })),
  }));
}
