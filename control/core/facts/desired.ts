/** How many replicas a model should have, and why. */
import type { Model } from "../catalog.ts";
import type { EpochMs } from "../ids.ts";
import type { World } from "../world.ts";
import { scales } from "./demand.ts";

export interface Desired {
  readonly count: number;
  /** Closed word. */
  readonly reason: "override" | "min" | "demand" | "awake" | "asleep" | "reports_missing";
  /** When time alone changes the answer; absent when it does not. */
  readonly until?: EpochMs;
}

/** `running`: replicas that are not on their way out; an absence of reports is no absence of demand. */
export function desired(world: World, model: Model, running: number, now: EpochMs): Desired {
  const override = world.decisions.scales.get(model.name);
  if (override !== undefined) return { count: override.replicas, reason: "override" };
  const { min, max } = model.scaling;
  if (!scales(model)) return { count: min, reason: "min" };
  const called = Math.min(max, world.models.get(model.name)?.scaled?.count ?? running);
  if (min > 0) {
    return called > min ? { count: called, reason: "demand" } : { count: min, reason: "min" };
  }
  const demandAt = world.models.get(model.name)?.demandAt;
  const idleAt = demandAt === undefined ? undefined : demandAt + world.timings.idleMs;
  if (idleAt !== undefined && now < idleAt) {
    const reason = called > 1 ? "demand" : "awake";
    return { count: Math.max(1, called), reason, until: idleAt };
  }
  if (running > 0 && !heardFromRouters(world, now)) {
    return { count: Math.max(1, called), reason: "reports_missing" };
  }
  return { count: 0, reason: "asleep" };
}

function heardFromRouters(world: World, now: EpochMs): boolean {
  for (const router of world.routers.values()) if (router.leaseUntil > now) return true;
  return false;
}
