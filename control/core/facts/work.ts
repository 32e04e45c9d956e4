/** How much a replica has to do, for choosing the one that is missed least. */
import type { EpochMs } from "../ids.ts";
import type { Replica, World } from "../world.ts";
import { leader } from "./shard_facts.ts";

/** Requests at routers or in the engine, whichever is more; absent when neither is known. */
export function workOf(world: World, replica: Replica, now: EpochMs): number | undefined {
  const atRouters = inFlightOf(world, replica.id, now);
  const load = leader(replica)?.status?.load;
  const inEngine = load === undefined ? undefined : load.running + load.waiting;
  if (atRouters === undefined) return inEngine;
  return Math.max(atRouters, inEngine ?? 0);
}

/** Sum over leased routers; absent when there is none. */
export function inFlightOf(world: World, replica: string, now: EpochMs): number | undefined {
  let sum: number | undefined;
  for (const router of world.routers.values()) {
    if (router.leaseUntil <= now) continue;
    sum = (sum ?? 0) + (router.replicas.get(replica)?.inFlight ?? 0);
  }
  return sum;
}
