/**
 * How much is asked of a model, kept as samples over the time that scaling looks back on. Routers say
 * what they hold and wait with; engines say what they have, also from routers that are not heard.
 */
import type { EpochMs } from "../ids.ts";
import type { Model } from "../catalog.ts";
import type { DemandSample, Replica, Router, World } from "../world.ts";
import { leader } from "./shard_facts.ts";

/** Length of one sample in ms: a few reports of each router. */
export const SAMPLE_MS = 5_000;

/** The number of replicas depends on demand. */
export function scales({ scaling }: Model): boolean {
  return scaling.min !== scaling.max;
}

/** What one report adds: answered and missed are since the router's last one. */
export interface Answered {
  readonly answered: number;
  readonly missed: number;
}

/** The samples with the demand at `now`; those that nothing looks back on any more are dropped. */
export function sampled(
  world: World,
  { name, running, before, said }: {
    readonly name: string;
    /** Its replicas that are not on their way out. */
    readonly running: readonly Replica[];
    readonly before: readonly DemandSample[];
    readonly said: Answered;
  },
  now: EpochMs,
): readonly DemandSample[] {
  const { scaleUpWindowMs, scaleDownWindowMs } = world.timings;
  const oldest = now - Math.max(scaleUpWindowMs, scaleDownWindowMs) - 2 * SAMPLE_MS;
  const requests = requestsOf(world, name, running, now);
  const whole = heardFromAll(world, now);
  const kept = before.filter((each) => each.to >= oldest);
  const last = kept.at(-1);
  if (last === undefined || now >= last.from + SAMPLE_MS) {
    return [...kept, { from: now, to: now, low: requests, high: requests, whole, ...said }];
  }
  return [...kept.slice(0, -1), {
    from: last.from,
    to: now,
    low: Math.min(last.low, requests),
    high: Math.max(last.high, requests),
    whole: last.whole && whole,
    answered: last.answered + said.answered,
    missed: last.missed + said.missed,
  }];
}

/** Requests in flight and waiting: by routers' or by engines' count, whichever is more. */
function requestsOf(
  world: World,
  name: string,
  running: readonly Replica[],
  now: EpochMs,
): number {
  let atRouters = 0;
  for (const router of world.routers.values()) {
    if (router.leaseUntil > now) atRouters += requestsAt(router, name, running);
  }
  return Math.max(atRouters, inEngines(world, running, now));
}

function requestsAt(router: Router, name: string, running: readonly Replica[]): number {
  return running.reduce(
    (sum, { id }) => sum + (router.replicas.get(id)?.inFlight ?? 0),
    router.models.get(name)?.waiting ?? 0,
  );
}

function inEngines(world: World, running: readonly Replica[], now: EpochMs): number {
  let sum = 0;
  for (const replica of running) {
    const load = leader(replica)?.status?.load;
    if (load === undefined || now - load.at > world.timings.unreachableMs) continue;
    sum += load.running + load.waiting;
  }
  return sum;
}

/**
 * No router has fallen silent lately. One that stays silent for a whole window is given up: what it
 * still sends, the engines show.
 */
function heardFromAll(world: World, now: EpochMs): boolean {
  for (const { leaseUntil } of world.routers.values()) {
    if (leaseUntil <= now && now < leaseUntil + world.timings.scaleDownWindowMs) return false;
  }
  return true;
}
