/** Routers as operators see them. */
import { compareRevisions } from "@heddle/proto/revision";
import type { EpochMs } from "../ids.ts";
import type { World } from "../world.ts";
import type { RouterView } from "../views.ts";

/** Every router that reported to this control, by name. */
export function viewRouters(world: World, now: EpochMs): readonly RouterView[] {
  return [...world.routers.values()]
    .sort((a, b) => a.name < b.name ? -1 : 1)
    .map((router) => ({
      name: router.name,
      version: router.version,
      applied: router.applied,
      current: compareRevisions(router.applied, world.published.revision) >= 0,
      leased: router.leaseUntil > now,
      lastReportMs: Math.max(0, now - router.lastReportAt),
      inFlight: sum(router.replicas.values(), (load) => load.inFlight),
      waiting: sum(router.models.values(), (load) => load.waiting),
    }));
}

function sum<T>(all: Iterable<T>, of: (each: T) => number): number {
  let total = 0;
  for (const each of all) total += of(each);
  return total;
}
