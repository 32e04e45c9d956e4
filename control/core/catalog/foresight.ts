/**
 * What a catalog would come to, without doing it: it is applied to a copy of the world, and passes
 * are made on that as if every command were carried out at once and every engine came up. Nothing
 * is said of time: what waits for it (a backoff, a window) still waits at the end.
 */
import type { Catalog } from "../catalog.ts";
import { goneStatus } from "../observing/command_result.ts";
import { observe } from "../observing/observe.ts";
import { withShard } from "../observing/shards.ts";
import { checkPlan } from "../check_plan.ts";
import { record } from "../deciding/record.ts";
import { ended, ending, serving } from "../facts/shard_facts.ts";
import type { EpochMs, ReplicaId } from "../ids.ts";
import type { Plan, Wait } from "../plan.ts";
import { publish } from "../publish.ts";
import { reconcile } from "../reconcile.ts";
import type { ObservedShard, Replica, Router, Shard, World } from "../world.ts";

/** Passes looked ahead. Replacing one replica takes four; more than this is said to be more. */
const FORESEEN_PASSES_MAX = 400;

export interface Foresight {
  readonly world: World;
  readonly now: EpochMs;
  readonly passes: number;
  /** Why replicas go, by the first decision about each. */
  readonly reasons: ReadonlyMap<ReplicaId, string>;
  /** What still waits after the last pass. */
  readonly waiting: readonly Wait[];
  /** `more`: there was more to do than was looked at. */
  readonly end: "not_yet" | "done" | "more";
}

/** The world as it would be right after the catalog is applied. Pure. */
export function beginForesight(world: World, catalog: Catalog, now: EpochMs): Foresight {
  const revision = world.catalog.revision + 1;
  const applied = { catalog, text: "", revision };
  return {
    world: observe(world, { kind: "catalog_applied", catalog: applied }, now),
    now,
    passes: 0,
    reasons: new Map(),
    waiting: [],
    end: "not_yet",
  };
}

/** Looks one pass further. Pure; a pass on a large fleet takes tens of milliseconds. */
export function foreseePass(so: Foresight): Foresight {
  const { world, now, passes } = so;
  const plan = reconcile(world, now);
  const decided = publish(record(world, plan, now), now);
  const last = plan.actions.length === 0 || checkPlan(world, plan, now).length > 0;
  return {
    // What happens after a decision must not carry its own time.
    world: last ? world : asIfDone(decided, now + 1),
    now: now + 1,
    passes: passes + 1,
    reasons: withReasons(so.reasons, plan),
    waiting: plan.waiting,
    end: last ? "done" : passes + 1 >= FORESEEN_PASSES_MAX ? "more" : "not_yet",
  };
}

function withReasons(
  before: ReadonlyMap<ReplicaId, string>,
  { actions }: Plan,
): ReadonlyMap<ReplicaId, string> {
  const reasons = new Map(before);
  for (const action of actions) {
    if (!("reason" in action) || action.kind === "stop_shard") continue;
    if (!reasons.has(action.replica)) reasons.set(action.replica, action.reason);
  }
  return reasons;
}

/** Every command was carried out, every router has heard, and nothing is in flight. */
function asIfDone(world: World, now: EpochMs): World {
  let next = world;
  for (const { id } of world.replicas.values()) {
    for (const shard of world.replicas.get(id)?.shards ?? []) {
      const replica = next.replicas.get(id);
      const status = replica === undefined ? undefined : outcome(replica, shard, now);
      if (replica === undefined || status === undefined) continue;
      next = withShard(next, replica, { ...shard, status }, now);
    }
  }
  const routers = [...world.routers].map(([name, router]) => [name, heard(router, world)] as const);
  return { ...next, routers: new Map(routers) };
}

function outcome(replica: Replica, shard: Shard, now: EpochMs): ObservedShard | undefined {
  if (ended(shard)) return undefined;
  const { status, command } = shard;
  if (ending(replica)) {
    return command?.kind === "stop" ? goneStatus(shard, "stopped", now) : undefined;
  }
  if (serving(shard) && status !== undefined) {
    return replica.draining === undefined
      ? undefined
      : { ...status, load: { running: 0, waiting: 0, at: now } };
  }
  const comesUp = status === undefined
    ? command?.kind === "start"
    : ["preparing", "starting", "loading"].includes(status.state);
  return comesUp ? readyStatus(shard, now) : undefined;
}

function readyStatus(shard: Shard, now: EpochMs): ObservedShard {
  return {
    state: "ready",
    revision: shard.command?.revision ?? { term: 0, sequence: 0 },
    attempt: shard.spec.attempt,
    reason: "",
    message: "",
    permanent: false,
    address: "planned:0",
    apiKey: "",
    logTail: [],
    since: now,
    load: { running: 0, waiting: 0, at: now },
    progress: "",
  };
}

function heard(router: Router, { published }: World): Router {
  return { ...router, applied: published.revision, replicas: new Map() };
}
