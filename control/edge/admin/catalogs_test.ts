import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import type { HeddleError } from "@heddle/proto/error";
import { parseCatalog } from "../../core/catalog.ts";
import type { CatalogApplied } from "../../core/event.ts";
import { observe } from "../../core/observing/observe.ts";
import { registered, T0, world } from "../../core/testing/builders.ts";
import type { World } from "../../core/world.ts";
import { foreseeDecision } from "../foresee.ts";
import { applyText, encodePlan, planText } from "./catalogs.ts";

const ONE = "models:\n  - {name: a, source: s, profiles: [{name: p, gpu_class: h100-80g}]}\n";
const TWO = `${ONE}  - {name: b, source: s, profiles: [{name: p, gpu_class: h100-80g}]}\n`;
const WRONG = "models:\n  - {name: a, source: s, profiles: [{name: p, gpus: 1}]}\n";

/** A loop over the real core that applies at once, with one node. */
function bench(text = ONE, known: readonly string[] = ["n1"]) {
  const parsed = parseCatalog(text, "c");
  if (parsed.kind !== "ok") throw new Error("the catalog of this test is wrong");
  let current: World = {
    ...world([], { knownNodes: new Set(known) }),
    catalog: { catalog: parsed.value, text, revision: 3 },
  };
  current = observe(current, registered("n1"), T0);
  const events: CatalogApplied[] = [];
  return {
    events,
    dispatch(event: CatalogApplied) {
      events.push(event);
      current = observe(current, event, T0);
      return Promise.resolve();
    },
    world: () => current,
    now: () => T0,
  };
}

const request = (text: string, yes = false) =>
  ({ $typeName: "heddle.v1.ApplyCatalogRequest", text, file: "c.yaml", yes }) as const;
const question = (text: string) =>
  ({ $typeName: "heddle.v1.PlanCatalogRequest", text, file: "c.yaml" }) as const;
const refusedAt = (place: string) => (error: HeddleError) => {
  deepEqual([error.code, error.message.split(": ")[0]], ["invalid_input", place]);
  return true;
};

Deno.test("planText() says what would come, and changes nothing", async () => {
  const loop = bench();
  const before = loop.world();
  const plan = await planText(loop, question(TWO));
  deepEqual(plan.starts.map(({ model, nodes }) => [model, nodes]), [["a", ["n1"]], ["b", ["n1"]]]);
  deepEqual(plan.changes.map(({ model, kind }) => [model, kind]), [["b", "added"]]);
  deepEqual([plan.revision, plan.waitReason, plan.incomplete], [3n, "", false]);
  equal(loop.world(), before);
});

Deno.test("planText() and applyText() refuse an invalid catalog with file, line and column", async () => {
  const loop = bench();
  await rejects(planText(loop, question(WRONG)), refusedAt("c.yaml:2:47"));
  await rejects(applyText(loop, request(WRONG), "ann"), refusedAt("c.yaml:2:47"));
  await rejects(
    applyText(loop, request("models: [", true), "ann"),
    (error: HeddleError) =>
      error.code === "invalid_input" && error.message.startsWith("c.yaml:1:10: "),
  );
  deepEqual(loop.events, []);
});

Deno.test("planText() has nothing to say before control knows what runs", async () => {
  await rejects(
    planText(bench(ONE, ["n1", "n2"]), question(TWO)),
    /Cannot plan yet: .*1 known nodes have not registered/,
  );
});

Deno.test("applyText() applies under the operator's name, once", async () => {
  const loop = bench();
  const answer = await applyText(loop, request(TWO), "ann");
  deepEqual([answer.applied, answer.revision], [true, 4n]);
  deepEqual(loop.events.map(({ by, catalog }) => [by, catalog.text, catalog.revision]), [
    ["ann", TWO, 4],
  ]);
  deepEqual((await applyText(loop, request(TWO), "bob")).revision, 4n);
  equal(loop.events.length, 1);
});

Deno.test("applyText() wants a yes for an empty catalog", async () => {
  const loop = bench();
  const waits = await applyText(loop, request("models: []\n"), "ann");
  deepEqual([waits.applied, waits.revision, waits.waitReason], [false, 3n, "empty"]);
  ok(waits.waitDetail.includes("no models"));
  deepEqual(loop.events, []);
  equal((await applyText(loop, request("models: []\n", true), "ann")).applied, true);
  equal(loop.world().catalog.catalog.models.length, 0);
});

Deno.test("encodePlan() tells a drain's shortage: the model of which none would run", async () => {
  const loop = bench();
  const starts = (await planText(loop, question(ONE))).starts.length;
  const event = { kind: "drain", node: "n1", by: "ann", reason: "" } as const;
  const plan = encodePlan(await foreseeDecision(loop.world(), event, T0), {});
  equal(starts, 1);
  deepEqual(plan.shortages.map(({ model, running, wanted }) => [model, running, wanted]), [
    ["a", 0, 1],
  ]);
});
