/** What is known of a model's source before a node has its weights. */
import type { ModelFacts } from "@heddle/common/model/model_facts";
import { isFetched } from "../catalog/source.ts";
import type { ModelSource } from "../placing/weights.ts";
import { weightsOf } from "../placing/weights.ts";
import type { SourceSeen, World } from "../world.ts";
import { weightsVersion } from "./weights_version.ts";

export interface SourceHint {
  /** Which version nodes fetch, so that all have the same; empty: what they find. */
  readonly version: string;
  /** Bytes that a node that has nothing of it must fetch; undefined: unknown. */
  readonly totalBytes: number | undefined;
  /** Bytes of the weights among them. */
  readonly weightBytes: number | undefined;
  /** What it says of its model; empty: nothing. */
  readonly facts: ModelFacts;
}

const NOTHING: SourceHint = {
  version: "",
  totalBytes: undefined,
  weightBytes: undefined,
  facts: {},
};

/** Names a source with its patterns, for `World.sources`. */
export function sourceKey({ source, source_include, source_exclude }: ModelSource): string {
  return JSON.stringify([source, source_include, source_exclude]);
}

export function sourceHint(world: World, model: ModelSource): SourceHint {
  if (!isFetched(model.source)) return NOTHING;
  const inventories = [...world.nodes.values()].map(({ inventory }) => inventory);
  const seen = world.sources?.get(sourceKey(model));
  const onNodes = inventories.flatMap((inventory) => weightsOf(inventory, model))
    .map(({ sizeBytes }) => Number(sizeBytes)).find((bytes) => bytes > 0);
  return {
    version: weightsVersion(inventories, model) || seen?.version || "",
    totalBytes: seen?.totalBytes ?? onNodes,
    weightBytes: seen?.weightBytes ?? onNodes,
    facts: seen?.model ?? {},
  };
}

/** The world with what a node read at a source. */
export function withSource(world: World, key: string, seen: SourceSeen): World {
  return { ...world, sources: new Map(world.sources).set(key, seen) };
}
