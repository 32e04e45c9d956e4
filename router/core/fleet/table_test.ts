import { deepEqual, equal } from "node:assert/strict";
import type { Endpoint, Model } from "./endpoint.ts";
import { apply, EMPTY_TABLE, isStale, overlay, type Table, type TableUpdate } from "./table.ts";

const FOLD = { table: EMPTY_TABLE, pending: [] };

function model(name: string, over: Partial<Model> = {}): Model {
  return {
    name,
    aliases: [],
    fallbacks: [],
    routingProfile: "",
    reason: "",
    wakeable: false,
    createdS: 1,
    ...over,
  };
}

function endpoint(replicaId: string, over: Partial<Endpoint> = {}): Endpoint {
  return {
    replicaId,
    model: "m",
    origin: { secure: false, host: "127.0.0.1", port: 1, basePath: "" },
    node: "n1",
    engine: "vllm",
    profile: "p",
    servedName: "m",
    apiKey: "",
    weight: 1,
    priority: 0,
    draining: false,
    degraded: false,
    maxModelLen: undefined,
    ...over,
  };
}

function update(over: Partial<TableUpdate>): TableUpdate {
  return {
    revision: { term: 1, sequence: 1 },
    snapshot: false,
    snapshotEnd: false,
    models: [],
    removedModels: [],
    endpoints: [],
    removedReplicas: [],
    settledNodes: [],
    settled: false,
    ...over,
  };
}

function snapshot(over: Partial<TableUpdate>): TableUpdate {
  return update({ snapshot: true, snapshotEnd: true, models: [model("m")], ...over });
}

function tableOf(...updates: TableUpdate[]): Table {
  return updates.reduce(apply, FOLD).table;
}

const ids = (table: Table) => [...table.endpoints.keys()].sort();

Deno.test("apply() puts a snapshot in force only once its last chunk is here", () => {
  const first = apply(FOLD, snapshot({ endpoints: [endpoint("a")], snapshotEnd: false }));
  equal(first.table, EMPTY_TABLE);
  const both = apply(first, snapshot({ endpoints: [endpoint("b")], models: [model("x")] }));
  deepEqual(ids(both.table), ["a", "b"]);
  deepEqual([...both.table.models.keys()], ["m", "x"]);
  equal(both.pending.length, 0);
});

Deno.test("apply() adds, changes and removes by deltas", () => {
  const table = tableOf(
    snapshot({ endpoints: [endpoint("a"), endpoint("b")], settled: true }),
    update({
      revision: { term: 1, sequence: 2 },
      endpoints: [endpoint("a", { draining: true }), endpoint("c")],
      removedReplicas: ["b"],
      models: [model("m", { aliases: ["nick"] })],
    }),
  );
  deepEqual(ids(table), ["a", "c"]);
  equal(table.endpoints.get("a")?.draining, true);
  equal(table.names.get("nick"), "m");
  equal(table.revision.sequence, 2);
  deepEqual(table.byModel.get("m")?.map(({ replicaId }) => replicaId), ["a", "c"]);
});

Deno.test("apply() keeps what an unsettled control left out, with its model", () => {
  const table = tableOf(
    snapshot({ endpoints: [endpoint("a"), endpoint("b", { node: "n2" })], settled: true }),
    snapshot({ models: [], endpoints: [], settledNodes: ["n2"] }),
  );
  deepEqual(ids(table), ["a"]);
  equal(table.models.has("m"), true);
  deepEqual([...table.unconfirmed], ["a"]);
});

Deno.test("apply() drops what stayed unconfirmed once its node, or control, has settled", () => {
  const before = [
    snapshot({ endpoints: [endpoint("a"), endpoint("b", { node: "n2" })], settled: true }),
    snapshot({ endpoints: [] }),
  ];
  deepEqual(ids(tableOf(...before, update({ settledNodes: ["n1"] }))), ["b"]);
  deepEqual(ids(tableOf(...before, update({ settled: true }))), []);
  const confirmed = update({ settledNodes: ["n1", "n2"], endpoints: [endpoint("a")] });
  deepEqual(ids(tableOf(...before, confirmed)), ["a"]);
});

Deno.test("apply() drops what a settled snapshot left out", () => {
  const table = tableOf(
    snapshot({ endpoints: [endpoint("a"), endpoint("b")], settled: true }),
    snapshot({ endpoints: [endpoint("b")], settled: true }),
  );
  deepEqual(ids(table), ["b"]);
});

Deno.test("isStale() knows an older leader by its term", () => {
  const table = tableOf(snapshot({ revision: { term: 3, sequence: 1 } }));
  equal(isStale(table, snapshot({ revision: { term: 2, sequence: 9 } })), true);
  equal(isStale(table, snapshot({ revision: { term: 3, sequence: 1 } })), false);
});

Deno.test("overlay() puts fixed endpoints beside control's and joins models of one name", () => {
  const fixed = tableOf(snapshot({
    models: [model("m", { aliases: ["fixed"] }), model("only")],
    endpoints: [endpoint("box"), endpoint("box2", { model: "only" })],
  }));
  const control = tableOf(snapshot({
    models: [model("m", { aliases: ["nick"], createdS: 7 })],
    endpoints: [endpoint("a")],
  }));
  const table = overlay(control, fixed);
  deepEqual(ids(table), ["a", "box", "box2"]);
  deepEqual(table.byModel.get("m")?.length, 2);
  deepEqual(table.models.get("m")?.aliases, ["nick", "fixed"]);
  equal(table.models.get("m")?.createdS, 7);
  equal(table.names.get("fixed"), "m");
});

Deno.test("a name beats an alias of the same spelling", () => {
  const table = tableOf(snapshot({ models: [model("a", { aliases: ["b"] }), model("b")] }));
  equal(table.names.get("b"), "b");
});
