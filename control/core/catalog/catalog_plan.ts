/** What operators are told of a catalog before it is applied. */
import type { Catalog, Model } from "../catalog.ts";
import { desired } from "../facts/desired.ts";
import { ending } from "../facts/shard_facts.ts";
import type { NodeId, ReplicaId } from "../ids.ts";
import { neverEnough } from "./never_enough.ts";
import type { Wait } from "../plan.ts";
import type { Replica, World } from "../world.ts";
import { fingerprint } from "./fingerprint.ts";
import type { Foresight } from "./foresight.ts";

export interface CatalogPlan {
  readonly changes: readonly ModelChange[];
  readonly starts: readonly (PlannedReplica & StartedReplica)[];
  readonly stops: readonly (PlannedReplica & StoppedReplica)[];
  /** Replicas that go on as they are. */
  readonly kept: number;
  readonly shortages: readonly ModelShortage[];
  /** There is more to do than was looked at. */
  readonly incomplete: boolean;
}

export interface ModelChange {
  readonly model: string;
  /** `replaced`: engines of it change; `changed`: none does. */
  readonly kind: "added" | "removed" | "replaced" | "changed";
  /** What differs, e.g. "scaling" or "profile fp8"; empty for a whole model. */
  readonly parts: readonly string[];
}

export interface PlannedReplica {
  readonly model: string;
  readonly profile: string;
  readonly nodes: readonly NodeId[];
}

export interface StartedReplica {
  /** One of those that stop, whose place it takes; absent when there is one more. */
  readonly replaces?: ReplicaId;
}

export interface StoppedReplica {
  readonly replicaId: ReplicaId;
  readonly reason: string;
}

/** Fewer would run than are wanted. */
export interface ModelShortage {
  readonly model: string;
  readonly wanted: number;
  readonly running: number;
  readonly detail: string;
}

/** Compares the world with what is foreseen for it. Pure. */
export function catalogPlan(before: World, foreseen: Foresight): CatalogPlan {
  const after = foreseen.world;
  const stays = (id: ReplicaId) => {
    const replica = after.replicas.get(id);
    return replica !== undefined && !ending(replica) && replica.draining === undefined;
  };
  const now = sorted(before.replicas.values()).filter((replica) => !ending(replica));
  const then = sorted(after.replicas.values()).filter(({ id }) => stays(id));
  const stops = now.filter(({ id }) => !stays(id)).map((replica) => ({
    ...planned(replica),
    replicaId: replica.id,
    reason: foreseen.reasons.get(replica.id) ?? replica.retiring?.reason ?? "",
  }));
  return {
    changes: changesOf(before.catalog.catalog, after.catalog.catalog),
    starts: paired(then.filter(({ id }) => !before.replicas.has(id)).map(planned), stops),
    stops,
    kept: now.filter(({ id }) => stays(id)).length,
    shortages: after.catalog.catalog.models.flatMap((model) =>
      shortageOf(model, then, foreseen) ?? []
    ),
    incomplete: foreseen.end === "more",
  };
}

function sorted(replicas: Iterable<Replica>): Replica[] {
  return [...replicas].sort((a, b) =>
    (a.model === b.model ? a.id < b.id : a.model < b.model) ? -1 : 1
  );
}

function planned({ model, profile, shards }: Replica): PlannedReplica {
  return { model, profile, nodes: shards.map(({ node }) => node) };
}

/** Each start with the stop that it makes up for: of its own profile if there is one, else of its model. */
function paired(
  starts: readonly PlannedReplica[],
  stops: readonly (PlannedReplica & StoppedReplica)[],
): CatalogPlan["starts"] {
  const taken = new Map<PlannedReplica, ReplicaId>();
  // Nobody takes the place of what is one too many.
  const left = new Set(stops.filter(({ reason }) => reason !== "surplus"));
  for (const sameProfile of [true, false]) {
    for (const start of starts) {
      const stop = taken.has(start)
        ? undefined
        : [...left].find((each) =>
          each.model === start.model && (!sameProfile || each.profile === start.profile)
        );
      if (stop === undefined) continue;
      taken.set(start, stop.replicaId);
      left.delete(stop);
    }
  }
  return starts.map((start) => {
    const replaces = taken.get(start);
    return replaces === undefined ? start : { ...start, replaces };
  });
}

function shortageOf(
  model: Model,
  then: readonly Replica[],
  { world, now, waiting }: Foresight,
): ModelShortage | undefined {
  const running = then.filter((replica) => replica.model === model.name);
  const wanted = desired(world, model, running.length, now).count;
  const waits = waiting.filter((wait) => concerns(wait, model.name, running));
  const outdated = running.filter((replica) => replica.retiring !== undefined);
  if (running.length - outdated.length >= wanted) return undefined;
  const waitsFor = waits.map(({ why, detail }) => detail === "" ? why : detail)[0] ?? "";
  const never = neverEnough([...world.nodes.values()], model);
  const detail = [waitsFor, ...(never === undefined ? [] : [never])].join("; ");
  return { model: model.name, wanted, running: running.length - outdated.length, detail };
}

function concerns(wait: Wait, model: string, running: readonly Replica[]): boolean {
  switch (wait.subject) {
    case "model":
      return wait.id === model;
    case "replica":
      return running.some(({ id }) => id === wait.id);
    case "shard":
      return running.some(({ shards }) => shards.some(({ id }) => id === wait.id));
  }
}

function changesOf(before: Catalog, after: Catalog): readonly ModelChange[] {
  const names = new Set([...before.models, ...after.models].map(({ name }) => name));
  return [...names].sort().flatMap((name): readonly ModelChange[] => {
    const from = before.models.find((model) => model.name === name);
    const to = after.models.find((model) => model.name === name);
    if (from === undefined) return [{ model: name, kind: "added", parts: [] }];
    if (to === undefined) return [{ model: name, kind: "removed", parts: [] }];
    const parts = partsOf(from, to);
    if (parts.length === 0) return [];
    return [{ model: name, kind: replaces(from, to) ? "replaced" : "changed", parts }];
  });
}

/** Some engine that runs by the one is not an engine of the other. */
function replaces(from: Model, to: Model): boolean {
  const prints = new Set(to.profiles.map((profile) => fingerprint(to, profile)));
  return from.profiles.some((profile) => !prints.has(fingerprint(from, profile)));
}

const FIELDS = [
  "source",
  "source_include",
  "source_exclude",
  "aliases",
  "fallbacks",
  "routing_profile",
  "band",
  "capacity",
  "scaling",
  "slo",
  "attach",
] as const;

function partsOf(from: Model, to: Model): readonly string[] {
  const differs = (a: unknown, b: unknown) => JSON.stringify(a) !== JSON.stringify(b);
  const fields = FIELDS.filter((field) => differs(from[field], to[field]));
  const profiles = new Set([...from.profiles, ...to.profiles].map(({ name }) => name));
  const changed = [...profiles].filter((name) =>
    differs(
      from.profiles.find((profile) => profile.name === name),
      to.profiles.find((profile) => profile.name === name),
    )
  );
  return [...fields, ...changed.map((name) => `profile ${name}`)];
}
