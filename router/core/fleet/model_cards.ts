/** The models as `/v1/models` lists them. */
import type { Table } from "./table.ts";

export interface ModelCard {
  readonly id: string;
  readonly object: "model";
  readonly created: number;
  readonly owned_by: "heddle";
}

/** One card for each name and alias, in the order of names. */
export function modelCards(table: Table): readonly ModelCard[] {
  return [...table.names.keys()].sort().map((name) => modelCard(table, name))
    .filter((found) => found !== undefined);
}

/** The card of one name or alias. */
export function modelCard(table: Table, id: string): ModelCard | undefined {
  const model = table.models.get(table.names.get(id) ?? "");
  return model === undefined
    ? undefined
    : { id, object: "model", created: model.createdS, owned_by: "heddle" };
}
