import { deepEqual, equal } from "node:assert/strict";
import { observe } from "../../core/observing/observe.ts";
import { modelOf, T0, world } from "../../core/testing/builders.ts";
import { Traffic } from "./traffic.ts";
import { ALL_MODELS } from "./wire.ts";

const TEN_S = 10_000;
const WORLD = world([modelOf({ name: "a" }), modelOf({ name: "b" })]);

const load = (model: string, requests: number, failures = 0) => ({
  model,
  requests,
  failures,
  waiting: 0,
});

Deno.test("Traffic turns what routers report into rates, for each model and for all", () => {
  const traffic = new Traffic();
  traffic.sample(WORLD, T0);
  traffic.reported([{ ...load("a", 30, 5), sloMisses: 2 }, load("b", 10)]);
  traffic.reported([load("a", 20)]);
  traffic.sample(WORLD, T0 + TEN_S);
  const a = traffic.latest().get("a");
  deepEqual([a?.requests, a?.failures, a?.sloMisses], [5, 0.5, 0.2]);
  equal(traffic.latest().get(ALL_MODELS)?.requests, 6);
  traffic.sample(WORLD, T0 + 2 * TEN_S);
  deepEqual(traffic.history("a").requests, [0, 5, 0]);
});

Deno.test("Traffic counts what leased routers hold and wait with", () => {
  const report = {
    kind: "router_report" as const,
    router: "r/1",
    version: "1",
    instance: "i",
    applied: { term: 0, sequence: 0 },
    replicas: new Map(),
    models: new Map([["a", { waiting: 7, requests: 0, failures: 0 }]]),
  };
  const traffic = new Traffic();
  const reported = observe(WORLD, report, T0);
  traffic.sample(reported, T0 + 1_000);
  equal(traffic.latest().get("a")?.waiting, 7);
  traffic.sample(reported, T0 + 60_000);
  equal(traffic.latest().get("a")?.waiting, 0, "its lease has ended");
});

Deno.test("Traffic keeps an hour, and only of models of the catalog", () => {
  const traffic = new Traffic();
  for (let count = 0; count < 400; count++) {
    traffic.reported([load("a", count), load("guessed", 1_000)]);
    traffic.sample(WORLD, T0 + count * TEN_S);
  }
  const { atS, requests } = traffic.history("a");
  deepEqual([atS.length, requests.at(0), requests.at(-1)], [360, 4, 39.9]);
  deepEqual([...traffic.latest().keys()].sort(), [ALL_MODELS, "a", "b"]);
  equal(traffic.history("guessed").atS.length, 0);
  traffic.sample(world([modelOf({ name: "b" })]), T0 + 400 * TEN_S);
  equal(traffic.history("a").atS.length, 0, "it left the catalog");
});

Deno.test("Traffic takes no sample while control stands by", () => {
  const traffic = new Traffic();
  traffic.sample(WORLD, T0);
  traffic.sample(undefined, T0 + TEN_S);
  traffic.sample(WORLD, T0 + 2 * TEN_S);
  equal(traffic.history(ALL_MODELS).atS.length, 2);
});
