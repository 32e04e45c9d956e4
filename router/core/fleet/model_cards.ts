/** The models as `/v1/models` lists them. */
import type { Model } from "./endpoint.ts";
import type { Table } from "./table.ts";

type MayUse = (model: Model) => boolean;

export interface ModelCard {
  readonly id: string;
  readonly object: "model";
  readonly created: number;
  readonly owned_by: "heddle";
}

/** One card for each name and alias of the models that are for the caller, in the order of names. */
export function modelCards(table: Table, mayUse: MayUse): readonly ModelCard[] {
  return [...table.names.keys()].sort().map((name) => modelCard(table, name, mayUse))
    .filter((found) => found !== undefined);
}

/** The card of one name or alias; undefined also for what is not for the caller. */
export function modelCard(table: Table, id: string, mayUse: MayUse): ModelCard | undefined {
  const model = table.models.get(table.names.get(id) ?? "");
  return model === undefined || !mayUse(model)
    ? undefined
    : { id, object: "model", created: model.createdS, owned_by: "heddle" };
}
