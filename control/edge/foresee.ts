/** Looks ahead to the end, and lets others have their turn meanwhile. */
import { HeddleError } from "@heddle/proto/error";
import type { Catalog } from "../core/catalog.ts";
import { type CatalogPlan, catalogPlan } from "../core/catalog/catalog_plan.ts";
import { beginForesight, foreseePass, type Foresight } from "../core/catalog/foresight.ts";
import type { OperatorEvent } from "../core/event.ts";
import { settled } from "../core/facts/settled.ts";
import type { EpochMs } from "../core/ids.ts";
import { observe } from "../core/observing/observe.ts";
import type { World } from "../core/world.ts";

/** What the fleet comes to under another catalog. */
export async function foresee(world: World, catalog: Catalog, now: EpochMs): Promise<Foresight> {
  return await toTheEnd(beginForesight(world, catalog, now));
}

/**
 * What an operator's decision would come to, without making it: the decision is taken on a copy of
 * the world. Throws `failed_precondition` before control is settled.
 */
export async function foreseeDecision(
  world: World,
  event: OperatorEvent,
  now: EpochMs,
): Promise<CatalogPlan> {
  if (!settled(world, now)) {
    throw new HeddleError(
      "failed_precondition",
      "Cannot foresee anything yet: control has just begun to lead and waits for its nodes",
    );
  }
  const begun = observe(world, event, now);
  const foreseen = await toTheEnd({
    world: begun,
    now,
    passes: 0,
    reasons: new Map(),
    waiting: [],
    end: "not_yet",
  });
  return catalogPlan(world, foreseen);
}

async function toTheEnd(begun: Foresight): Promise<Foresight> {
  let foreseen = begun;
  while (foreseen.end === "not_yet") {
    foreseen = foreseePass(foreseen);
    // Between two passes: the lease is claimed by this very thread.
    await new Promise((turn) => setTimeout(turn));
  }
  return foreseen;
}
