/** What a model's replicas run on: the words by which measurements are known. Pure. */
import { fingerprint } from "../catalog/fingerprint.ts";
import type { Model, Profile } from "../catalog.ts";
import { leader } from "../facts/shard_facts.ts";
import type { EpochMs } from "../ids.ts";
import { replicaState } from "../views/replicas.ts";
import type { Replica, World } from "../world.ts";
import { CPU_CLASS } from "./measurement.ts";

export function hardwareClass({ gpu_class }: Pick<Profile, "gpu_class">): string {
  return gpu_class ?? CPU_CLASS;
}

/** As the replica was started with, or as its node has it; empty when neither says. */
export function engineVersion(world: World, replica: Replica): string {
  const shard = leader(replica) ?? replica.shards[0];
  if (shard === undefined) return "";
  const { engine, engineVersion: said } = shard.spec;
  const installed = world.nodes.get(shard.node)?.inventory.engines
    .filter(({ name }) => name === engine).map(({ version }) => version) ?? [];
  return said || (installed.length === 1 ? installed[0] ?? "" : "");
}

/** Replicas of one engine configuration. */
export interface Group {
  /** By the fingerprint; undefined for one that the catalog no longer has. */
  readonly profile: Profile | undefined;
  /** The profile's name, also of one that is gone. */
  readonly name: string;
  readonly fingerprint: string;
  readonly count: number;
  /** Different ones that these replicas run. */
  readonly engineVersions: readonly string[];
}

/** One for each profile of the catalog, in its order, then what only runs any more. */
export function groupsOf(
  world: World,
  model: Model,
  replicas: readonly Replica[],
): readonly Group[] {
  const byPrint = Map.groupBy(replicas, (replica) => replica.fingerprint);
  const group = (name: string, print: string, profile: Profile | undefined): Group => {
    const members = byPrint.get(print) ?? [];
    return {
      profile,
      name,
      fingerprint: print,
      count: members.length,
      engineVersions: [...new Set(members.map((each) => engineVersion(world, each)))].sort(),
    };
  };
  const own = model.profiles.map((profile) =>
    group(profile.name, fingerprint(model, profile), profile)
  );
  const left = [...byPrint].filter(([print]) => !own.some((each) => each.fingerprint === print));
  return [...own, ...left.map(([print, [first]]) => group(first?.profile ?? "", print, undefined))];
}

export function readyReplicas(world: World, model: Model, now: EpochMs): readonly Replica[] {
  return replicasOf(world, model).filter((replica) =>
    replicaState(world, replica, now).state === "ready"
  );
}

export function replicasOf(world: World, { name }: Model): readonly Replica[] {
  return [...world.replicas.values()].filter((replica) => replica.model === name)
    .sort((a, b) => a.id < b.id ? -1 : 1);
}
