/** Whether a new catalog may be acted on at once, or is so large a change that a person must say so. */
import { type Catalog, findModel } from "../catalog.ts";
import { settled } from "../facts/settled.ts";
import { ending } from "../facts/shard_facts.ts";
import type { EpochMs } from "../ids.ts";
import type { World } from "../world.ts";

export type CatalogVerdict =
  | { readonly kind: "apply" }
  /** `detail` has the numbers. */
  | {
    readonly kind: "wait";
    readonly reason: "settling" | "empty" | "stops_many";
    readonly detail: string;
  };

/** A change may stop this share of what runs without being asked again. */
const STOPPED_SHARE_MAX = 0.25;

/** Judges a valid catalog against what runs. The first catalog of all is always applied. Pure. */
export function judgeCatalog(world: World, next: Catalog, now: EpochMs): CatalogVerdict {
  const current = world.catalog.catalog;
  if (world.catalog.revision === 0) return { kind: "apply" };
  if (next.models.length === 0 && current.models.length > 0) {
    return {
      kind: "wait",
      reason: "empty",
      detail: `it has no models, the one that is acted on has ${current.models.length}`,
    };
  }
  const leaving = current.models.filter((model) => !keeps(next, model.name));
  if (leaving.length > 0 && !settled(world, now)) {
    return {
      kind: "wait",
      reason: "settling",
      detail: `it drops ${leaving.length} models, and control does not know yet what runs`,
    };
  }
  const running = [...world.replicas.values()].filter((replica) =>
    !ending(replica) && replica.readyAt !== undefined
  );
  const stopped = stoppedBy(next, running.map((replica) => replica.model));
  if (stopped > running.length * STOPPED_SHARE_MAX) {
    return {
      kind: "wait",
      reason: "stops_many",
      detail: `it would stop ${stopped} of ${running.length} running replicas`,
    };
  }
  return { kind: "apply" };
}

function keeps(catalog: Catalog, name: string): boolean {
  return findModel(catalog, name)?.name === name;
}

/** Replicas that the catalog has no place for: of models it lacks, or beyond their maximum. */
function stoppedBy(next: Catalog, running: readonly string[]): number {
  const counts = new Map<string, number>();
  for (const model of running) counts.set(model, (counts.get(model) ?? 0) + 1);
  let stopped = 0;
  for (const [name, count] of counts) {
    const model = next.models.find((each) => each.name === name);
    stopped += model === undefined ? count : Math.max(0, count - model.scaling.max);
  }
  return stopped;
}
