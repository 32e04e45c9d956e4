import { deepEqual, ok } from "node:assert/strict";
import { checkPlan, type Rule } from "./check_plan.ts";
import { observe } from "./observing/observe.ts";
import type { Action, PlaceReplica, Plan } from "./plan.ts";
import { reconcile } from "./reconcile.ts";
import { record } from "./deciding/record.ts";
import { modelOf, T0, worldWith } from "./testing/builders.ts";
import type { World } from "./world.ts";

const wide = modelOf({ name: "w" }, { tp: 8, pp: 2, nodes: 2 });
const fresh = worldWith([wide], {
  n1: { fabric: "ib" },
  n2: { fabric: "ib" },
  n3: { fabric: "other", gpuClass: "a100-80g" },
});
const good = reconcile(fresh, T0);

function rules(world: World, plan: Plan): readonly Rule[] {
  return [...new Set(checkPlan(world, plan, T0).map((each) => each.rule))].sort();
}

type Shards = PlaceReplica["shards"];

/** The good plan with its placement changed. */
function placing(change: (shards: Shards) => Shards): Plan {
  return {
    ...good,
    actions: good.actions.map((action) =>
      action.kind === "place_replica" ? { ...action, shards: change(action.shards) } : action
    ),
  };
}

function second(shards: Shards, change: Partial<Shards[number]["spec"]>, node?: string): Shards {
  return shards.map((each, rank) =>
    rank === 1 ? { node: node ?? each.node, spec: { ...each.spec, ...change } } : each
  );
}

Deno.test("checkPlan() has nothing against a plan of reconcile()", () => {
  ok(good.actions.length > 0);
  deepEqual(rules(fresh, good), []);
});

Deno.test("checkPlan() finds a GPU and ports that a shard holds already", () => {
  const world = record(fresh, good, T0);
  const again = reconcile(fresh, T0).actions.map((action): Action =>
    action.kind === "place_replica" ? { ...action, replica: "other" } : action
  );
  const found = checkPlan(world, { ...good, actions: again }, T0).map((each) => each.rule);
  ok(found.includes("gpu_used_twice") && found.includes("ports_overlap"), found.join());
});

Deno.test("checkPlan() finds a replica over two fabrics, with HCAs that are not of its fabric", () => {
  const plan = placing((shards) => second(shards, { fabric: "other" }));
  deepEqual(rules(fresh, plan), ["fabric_mixed", "hcas_foreign"]);
  deepEqual(rules(fresh, placing((shards) => second(shards, { fabric: "" }))), [
    "fabric_mixed",
    "hcas_foreign",
  ]);
});

Deno.test("checkPlan() finds ranks with different numbers of HCAs, or none", () => {
  const plan = placing((shards) => second(shards, { hcas: shards[1]?.spec.hcas.slice(1) ?? [] }));
  deepEqual(rules(fresh, plan), ["hca_count_uneven"]);
  const none = placing((shards) =>
    shards.map((each) => ({ ...each, spec: { ...each.spec, hcas: [] } }))
  );
  deepEqual(rules(fresh, none), ["hca_count_uneven"]);
});

Deno.test("checkPlan() finds GPUs of two classes, and GPUs that are not there", () => {
  const gpus = fresh.nodes.get("n3")?.inventory.gpus.map(({ index, uuid }) => ({ index, uuid }));
  ok(gpus !== undefined);
  const mixed = checkPlan(fresh, placing((shards) => second(shards, { gpus }, "n3")), T0)
    .map((each) => each.rule);
  ok(mixed.includes("gpu_class_mixed"), mixed.join());
  const absent = placing((shards) => second(shards, { gpus: [{ index: 0, uuid: "GPU-none" }] }));
  deepEqual(rules(fresh, absent), ["gpu_class_mixed", "gpu_unusable"]);
});

Deno.test("checkPlan() finds a replica that is not whole", () => {
  deepEqual(rules(fresh, placing((shards) => shards.slice(0, 1))), ["replica_not_whole"]);
  const unstarted = good.actions.filter((action) => action.kind === "place_replica");
  deepEqual(rules(fresh, { ...good, actions: unstarted }), ["replica_not_whole"]);
});

Deno.test("checkPlan() finds a start on a node that is closed, cut off or silent", () => {
  const closed = observe(fresh, { kind: "cordon", node: "n2", by: "ops", reason: "" }, T0);
  deepEqual(rules(closed, good), ["node_unschedulable"]);
  deepEqual(rules(observe(fresh, { kind: "stream_closed", node: "n1" }, T0), good), [
    "node_unschedulable",
  ]);
  ok(checkPlan(fresh, good, T0 + 20_000).every((each) => each.rule === "node_unschedulable"));
});

Deno.test("checkPlan() finds placements and drains before control is settled", () => {
  const unheard = { ...fresh, knownNodes: new Set([...fresh.knownNodes, "n9"]) };
  deepEqual(rules(unheard, good), ["not_settled"]);
});

Deno.test("checkPlan() finds stops without a reason, and stops of half a replica", () => {
  const world = record(fresh, good, T0);
  const replica = [...world.replicas.values()][0];
  ok(replica !== undefined);
  const stops = replica.shards.map((shard): Action => ({
    kind: "stop_shard",
    shard: shard.id,
    replica: replica.id,
    node: shard.node,
    reason: "drained",
    graceMs: 0,
    revision: { term: world.term, sequence: world.sequence + 1 },
  }));
  const idle: Plan = { actions: stops, waiting: [], kept: [], attempts: [], steps: [] };
  deepEqual(rules(world, idle), ["stop_without_reason"]);
  const ended: Action = { kind: "stop_replica", replica: replica.id, reason: "drained" };
  deepEqual(rules(world, { ...idle, actions: [ended, ...stops] }), []);
  deepEqual(rules(world, { ...idle, actions: [ended, ...stops.slice(1)] }), ["stop_not_whole"]);
});

Deno.test("checkPlan() finds old revisions and two commands for one shard", () => {
  const old = good.actions.map((action): Action =>
    action.kind === "start_shard" ? { ...action, revision: { term: 0, sequence: 9 } } : action
  );
  deepEqual(rules(fresh, { ...good, actions: old }), ["revision_old"]);
  const twice = [...good.actions, ...good.actions.filter((each) => each.kind === "start_shard")];
  deepEqual(rules(fresh, { ...good, actions: twice }), ["two_commands"]);
});
