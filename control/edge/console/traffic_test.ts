import { deepEqual, equal, ok } from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { bucketOf } from "@heddle/proto/first_content_times";
import { ModelLoadSchema } from "@heddle/proto/gen/router";
import { observe } from "../../core/observing/observe.ts";
import { modelOf, T0, world } from "../../core/testing/builders.ts";
import { Traffic } from "./traffic.ts";
import { waitingAt } from "./traffic_sample.ts";
import { ALL_MODELS } from "./wire.ts";

const TEN_S = 10_000;
const WORLD = world([modelOf({ name: "a" }), modelOf({ name: "b" })]);

/** What a router of today says beside the counts: all of `requests` were in one bucket. */
function measured(requests: number, bucket: number, [prompt, cached]: readonly [bigint, bigint]) {
  const { firstContent, promptCache } = create(ModelLoadSchema, {
    firstContent: { counts: [...Array<number>(bucket).fill(0), requests] },
    promptCache: { promptTokens: prompt, cachedTokens: cached },
  });
  return { firstContent, promptCache };
}

/** Buckets are a fifth wide. */
const near = (found: number | null | undefined, ms: number) =>
  typeof found === "number" && found > ms / 1.2 && found < ms * 1.2;

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

Deno.test("Traffic adds up what several routers measured before it says a percentile or a share", () => {
  const traffic = new Traffic();
  traffic.sample(WORLD, T0);
  const quick = { ...load("a", 98), ...measured(98, bucketOf(100), [900n, 90n]) };
  const slow = { ...load("a", 2), ...measured(2, bucketOf(5_000), [100n, 60n]) };
  traffic.reported([quick]);
  traffic.reported([slow, { ...load("b", 1), ...measured(1, bucketOf(9), [1_000n, 0n]) }]);
  traffic.sample(WORLD, T0 + TEN_S);
  const a = traffic.latest().get("a");
  ok(near(a?.ttftP50Ms, 100) && near(a?.ttftP99Ms, 5_000), JSON.stringify(a));
  equal(a?.cacheShare, 0.15);
  equal(traffic.latest().get(ALL_MODELS)?.cacheShare, 0.075);
});

Deno.test("Traffic does not take what nobody measured for 0", () => {
  const traffic = new Traffic();
  traffic.sample(WORLD, T0);
  traffic.reported([load("a", 30), { ...load("b", 5), ...measured(0, 0, [0n, 0n]) }]);
  traffic.sample(WORLD, T0 + TEN_S);
  for (const name of ["a", "b", ALL_MODELS]) {
    const sample = traffic.latest().get(name);
    deepEqual([sample?.ttftP50Ms, sample?.ttftP99Ms, sample?.cacheShare], [null, null, null], name);
  }
  deepEqual(traffic.history("a").ttftP99Ms, [null, null]);
});

Deno.test("waitingAt() adds bands up, and knows none where one router that has a queue does not tell", () => {
  const queued = { platinum: 0, gold: 2, silver: 0, bronze: 5 };
  const said = (waiting: number, bands?: typeof queued) => ({
    models: new Map([["a", { waiting, requests: 0, failures: 0, queued: bands }]]),
  });
  deepEqual(waitingAt([said(8, queued), said(2, { ...queued, bronze: 0 }), said(0)], "a"), {
    waiting: 10,
    platinum: 0,
    gold: 4,
    silver: 0,
    bronze: 5,
  });
  const unknown = { platinum: null, gold: null, silver: null, bronze: null };
  deepEqual(waitingAt([said(8, queued), said(1)], "a"), { waiting: 9, ...unknown });
  deepEqual(waitingAt([], "a"), { waiting: 0, ...unknown });
  equal(waitingAt([said(8, queued)], "b").gold, 0);
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
