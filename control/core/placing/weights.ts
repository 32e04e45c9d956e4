/** Whether a node has a model's weights, how large they are, and what it is told to fetch. */
import type { Plain } from "@heddle/proto/plain";
import type { Inventory } from "@heddle/proto/gen/types";
import type { Weights, WeightsWant } from "@heddle/proto/gen/weights";
import { decodeWeightsState } from "@heddle/proto/weights_state";
import { isFetched } from "../catalog/source.ts";
import type { Model } from "../catalog.ts";

/** What a model's source is made of. */
export type ModelSource = Pick<Model, "source" | "source_include" | "source_exclude">;

/** What a node is told to fetch; undefined for a source that is not fetched. */
export function wantOf(model: ModelSource, version: string): Plain<WeightsWant> | undefined {
  const { source, source_include: include, source_exclude: exclude } = model;
  return isFetched(source) ? { source, include, exclude, version } : undefined;
}

/** Size in bytes of a model's weights on a node that has them; undefined where they are not. */
export function weightsBytes(inventory: Plain<Inventory>, model: ModelSource): number | undefined {
  const fetched = weightsOf(inventory, model)
    .find(({ state }) => decodeWeightsState(state) === "ready");
  if (fetched !== undefined) return Number(fetched.sizeBytes);
  const wanted = trimmed(model.source);
  const file = inventory.modelFiles.find((each) => trimmed(each.path) === wanted);
  return file === undefined ? undefined : Number(file.sizeBytes);
}

/** What Heddle fetched, or fetches, of a model's source on a node. */
export function weightsOf(
  inventory: Plain<Inventory>,
  model: ModelSource,
): readonly Plain<Weights>[] {
  const wanted = wantOf(model, "");
  if (wanted === undefined) return [];
  return (inventory.weights?.weights ?? []).filter(({ want }) =>
    want !== undefined && sameWant(want, wanted)
  );
}

/** In [0,1]: there already, on the way, or neither. What is never fetched is there. */
export function weightsNearness(inventory: Plain<Inventory>, model: ModelSource): number {
  if (!isFetched(model.source) || weightsBytes(inventory, model) !== undefined) return 1;
  const fetching = weightsOf(inventory, model)
    .some(({ state }) => decodeWeightsState(state) === "fetching");
  return fetching ? 0.5 : 0;
}

/** A source that must lie on the node already; any other kind can be fetched, or is an engine's. */
export function isPath(source: string): boolean {
  return source.startsWith("/");
}

/** The same files, whatever their version. */
export function sameWant(a: Plain<WeightsWant>, b: Plain<WeightsWant>): boolean {
  const text = ({ source, include, exclude }: Plain<WeightsWant>) =>
    JSON.stringify([source, include, exclude]);
  return text(a) === text(b);
}

function trimmed(path: string): string {
  return path.length > 1 ? path.replace(/\/+$/, "") : path;
}
