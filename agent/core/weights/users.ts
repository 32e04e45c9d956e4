/** Which shards of this node need which weights. */
import { ended, type Shard } from "../shard/shard.ts";
import { ownName, type Want } from "./own_name.ts";

/** Ids of shards that use `want`, in any version, and have not ended. */
export function usersOf(want: Want, shards: readonly Shard[]): readonly string[] {
  const name = ownName(want);
  return shards.filter(({ spec, state }) =>
    spec.weights !== undefined && !ended(state) && ownName(spec.weights) === name
  ).map(({ spec }) => spec.shardId);
}

/** Everything that shards which have not ended need. */
export function usedBy(shards: readonly Shard[]): readonly Want[] {
  return shards.flatMap(({ spec, state }) => ended(state) ? [] : spec.weights ?? []);
}

/** A shard that has not ended and was given a path in `folder`: a draft model, or an adapter. */
export function namerOf(folder: string, shards: readonly Shard[]): string | undefined {
  return shards.find(({ spec: { source, args, env }, state }) =>
    !ended(state) && [source, ...args, ...Object.values(env)].some((text) => text.includes(folder))
  )?.spec.shardId;
}
