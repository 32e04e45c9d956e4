/** Looks ahead to the end, and lets others have their turn meanwhile. */
import type { Catalog } from "../core/catalog.ts";
import { beginForesight, foreseePass, type Foresight } from "../core/catalog/foresight.ts";
import type { EpochMs } from "../core/ids.ts";
import type { World } from "../core/world.ts";

export async function foresee(world: World, catalog: Catalog, now: EpochMs): Promise<Foresight> {
  let foreseen = beginForesight(world, catalog, now);
  while (foreseen.end === "not_yet") {
    foreseen = foreseePass(foreseen);
    // Between two passes: the lease is claimed by this very thread.
    await new Promise((turn) => setTimeout(turn));
  }
  return foreseen;
}
