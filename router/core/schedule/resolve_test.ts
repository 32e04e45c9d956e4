import { deepEqual, equal } from "node:assert/strict";
import type { Model } from "../fleet/endpoint.ts";
import { apply, EMPTY_TABLE, type Table } from "../fleet/table.ts";
import { resolveModel } from "./resolve.ts";

function tableOf(...models: (Partial<Model> & { readonly name: string })[]): Table {
  return apply({ table: EMPTY_TABLE, pending: [] }, {
    revision: { term: 1, sequence: 1 },
    snapshot: true,
    snapshotEnd: true,
    models: models.map((model) => ({
      aliases: [],
      fallbacks: [],
      routingProfile: "",
      reason: "",
      wakeable: false,
      createdS: 1,
      ...model,
    })),
    removedModels: [],
    endpoints: [],
    removedReplicas: [],
    settledNodes: [],
    settled: true,
  }).table;
}

const TABLE = tableOf(
  { name: "a", aliases: ["nick"], fallbacks: ["b", "other", "a", "gone", "b"] },
  { name: "b", aliases: ["other"] },
);

function names(asked: string, fallbacks = true): string[] | undefined {
  return resolveModel(TABLE, asked, { fallbacks })?.models.map(({ name }) => name);
}

Deno.test("resolveModel() finds names and aliases, with each fallback once", () => {
  deepEqual(names("a"), ["a", "b"]);
  deepEqual(names("nick"), ["a", "b"]);
  deepEqual(names("other"), ["b"]);
  equal(names("gone"), undefined);
  equal(names("__proto__"), undefined);
});

Deno.test("resolveModel() leaves fallbacks out when they are not wanted", () => {
  deepEqual(names("nick", false), ["a"]);
});
