/** From the name a client asked for to the models that may answer, best first. */
import type { Model } from "../fleet/endpoint.ts";
import type { Table } from "../fleet/table.ts";

export interface Resolved {
  /** The name as the client wrote it. */
  readonly asked: string;
  /** The model it names, then its fallbacks in order, each once. */
  readonly models: readonly [Model, ...Model[]];
}

/** Undefined when no model has this name or alias. A fallback that is not in the table is left out. */
export function resolveModel(
  table: Table,
  asked: string,
  options: { readonly fallbacks: boolean },
): Resolved | undefined {
  const first = modelNamed(table, asked);
  if (first === undefined) return undefined;
  const models: [Model, ...Model[]] = [first];
  if (options.fallbacks) {
    for (const name of first.fallbacks) {
      const model = modelNamed(table, name);
      if (model !== undefined && !models.includes(model)) models.push(model);
    }
  }
  return { asked, models };
}

function modelNamed(table: Table, name: string): Model | undefined {
  const model = table.names.get(name);
  return model === undefined ? undefined : table.models.get(model);
}
