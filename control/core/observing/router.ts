/** Routers say what they do, and ask for models that sleep. */
import { compareRevisions } from "@heddle/proto/revision";
import { CLEAN_RECORD } from "../deciding/draft.ts";
import { sampled, scales } from "../facts/demand.ts";
import { ending } from "../facts/shard_facts.ts";
import type { RouterEvent } from "../event.ts";
import type { EpochMs } from "../ids.ts";
import type { ModelRecord, World } from "../world.ts";

type Report = Extract<RouterEvent, { kind: "router_report" }>;

/** How long a router that reports no more is shown; names of containers never come back. */
const FORGET_MS = 3_600_000;

/** Renews the lease and notes the demand. */
export function observeReport(world: World, report: Report, now: EpochMs): World {
  const { router: name, version, instance, applied, replicas, models } = report;
  const router = {
    name,
    version,
    instance,
    leaseUntil: now + world.timings.routerLeaseMs,
    lastReportAt: now,
    applied,
    replicas,
    models,
  };
  const next = {
    ...world,
    // It follows a publication that is not ours: ours must be newer, or it would not apply them.
    ...(compareRevisions(applied, world) > 0 ? { term: applied.term + 1, sequence: 0 } : {}),
    routers: new Map([...world.routers].filter(([, each]) => now - each.lastReportAt < FORGET_MS))
      .set(name, router),
  };
  return withSamples(withDemand(next, demanded(world, report), now), report, now);
}

/** Every report is a look at the demand for all models, also for those that it does not name. */
function withSamples(world: World, { models: said }: Report, now: EpochMs): World {
  const scaling = world.catalog.catalog.models.filter(scales);
  if (scaling.length === 0) return world;
  const models = new Map<string, ModelRecord>(world.models);
  const replicas = Map.groupBy(world.replicas.values(), (each) => each.model);
  for (const { name } of scaling) {
    const running = (replicas.get(name) ?? []).filter((each) => !ending(each));
    const record = models.get(name) ?? CLEAN_RECORD;
    const { requests: answered = 0, sloMisses: missed = 0 } = said.get(name) ?? {};
    const demand = sampled(
      world,
      { name, running, before: record.demand ?? [], said: { answered, missed } },
      now,
    );
    models.set(name, { ...record, demand });
  }
  return { ...world, models };
}

/** Someone wants the model; whether it is started is for `reconcile`. Unknown names change nothing. */
export function observeWake(world: World, model: string, now: EpochMs): World {
  const known = world.catalog.catalog.models.some((each) => each.name === model);
  return known ? withDemand(world, new Set([model]), now) : world;
}

/**
 * Models of the report with requests new, waiting or in flight. Only of those that run: what sleeps
 * is started by a wake, which comes after authentication and limits, and by nothing else.
 */
function demanded(world: World, { replicas, models }: Report): ReadonlySet<string> {
  const running = new Set<string>();
  for (const replica of world.replicas.values()) if (!ending(replica)) running.add(replica.model);
  const names = new Set<string>();
  for (const [model, load] of models) {
    if ((load.requests > 0 || load.waiting > 0) && running.has(model)) names.add(model);
  }
  for (const [id, load] of replicas) {
    const model = world.replicas.get(id)?.model;
    if (load.inFlight > 0 && model !== undefined) names.add(model);
  }
  return names;
}

function withDemand(world: World, names: ReadonlySet<string>, now: EpochMs): World {
  if (names.size === 0) return world;
  const models = new Map<string, ModelRecord>(world.models);
  for (const name of names) {
    models.set(name, { ...(models.get(name) ?? CLEAN_RECORD), demandAt: now });
  }
  return { ...world, models };
}
