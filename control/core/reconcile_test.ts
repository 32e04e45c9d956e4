import { deepEqual, equal, match, ok } from "node:assert/strict";
import type { Action, Plan } from "./plan.ts";
import { catalog } from "./testing/builders.ts";
import { FakeNode, type FakeNodeOptions } from "./testing/fake_node.ts";
import { SIM_TIMINGS, Simulation } from "./testing/simulation.ts";
import type { Replica } from "./world.ts";

/** A quiet simulation: nothing is lost, nobody fails unless the test says so. */
function fleet(
  models: readonly object[],
  nodes: readonly Partial<FakeNodeOptions>[] = [{}, {}],
): Simulation {
  const sim = new Simulation({
    seed: 1,
    known: true,
    catalog: catalog(...models),
    nodes: nodes.map((each, index) =>
      new FakeNode({
        name: `n${index + 1}`,
        shape: { gpus: 8 },
        loadMs: 2_000,
        stopMs: 500,
        ...each,
      })
    ),
  });
  return sim;
}

const small = (rest: object = {}, profile: object = {}) => ({
  name: "m",
  source: "org/w",
  profiles: [{ name: "p", gpu_class: "h100-80g", ...profile }],
  ...rest,
});
const wide = (rest: object = {}) =>
  small({ name: "w", ...rest }, { tp: 8, pp: 2, nodes: 2, launch_mode: "mp" });

const of = (sim: Simulation, model = "m"): readonly Replica[] =>
  [...sim.world.replicas.values()].filter((replica) => replica.model === model);
const nodesOf = (replica: Replica | undefined) => replica?.shards.map((shard) => shard.node) ?? [];
const runningOn = (sim: Simulation, node: string) =>
  sim.nodes.get(node)?.running().map((shard) => shard.spec.replicaId) ?? [];
const whys = (plan: Plan | undefined) => plan?.waiting.map(({ id, why }) => `${id} ${why}`) ?? [];

/** Actions of every pass from here on. */
function recorded(sim: Simulation): Action[] {
  const actions: Action[] = [];
  sim.onPass = (_world, plan) => actions.push(...plan.actions);
  return actions;
}

function one<T>(list: readonly T[]): T {
  const [only] = list;
  ok(only !== undefined && list.length === 1, `want one, have ${list.length}`);
  return only;
}

Deno.test("reconcile() starts what the catalog wants and then has nothing to do", () => {
  const sim = fleet([small({ scaling: { min: 2 } }), wide({ scaling: { min: 0 } })]);
  sim.run(30_000);
  equal(of(sim).filter((replica) => replica.readyAt !== undefined).length, 2);
  equal(of(sim, "w").length, 0);
  deepEqual(sim.lastPlan?.actions, []);
  deepEqual(sim.lastPlan?.waiting, []);
  deepEqual(sim.violations, []);
});

Deno.test("reconcile() keeps what runs on a GPU that gets a problem, and puts nothing new there", () => {
  const sim = fleet([small()], [{ shape: { gpus: 2 } }]);
  sim.run(30_000);
  const replica = one(of(sim));
  const held = replica.shards[0]?.spec.gpus[0]?.index ?? -1;
  const node = sim.nodes.get("n1");
  node?.badGpus.add(held);
  const actions = recorded(sim);
  sim.run(60_000);
  deepEqual(actions, []);
  equal(one(of(sim)).id, replica.id);
  node?.crash(`${replica.id}-0`, "exited", sim.now);
  sim.run(120_000);
  equal(one(of(sim)).shards[0]?.spec.gpus[0]?.index, 1 - held, "the other one");
  deepEqual(sim.violations, []);
});

Deno.test("reconcile() tries other ports when a foreign program holds those of a shard", () => {
  const sim = fleet([small()], [{ shape: { gpus: 8, portBlocks: 3 } }]);
  const node = sim.nodes.get("n1");
  node?.foreignPorts.add(20_000).add(20_256);
  sim.run(60_000);
  const replica = one(of(sim));
  equal(replica.shards[0]?.status?.state, "ready");
  equal(replica.shards[0]?.spec.portFirst, 20_512);
  // When all blocks are doubtful, one is tried all the same: what was there may be gone.
  node?.foreignPorts.clear();
  node?.foreignPorts.add(20_512);
  node?.crash(`${replica.id}-0`, "exited", sim.now);
  sim.run(120_000);
  equal(one(of(sim)).shards[0]?.spec.portFirst, 20_000);
});

Deno.test("reconcile() fails a replica whole and stops its other shards", () => {
  const sim = fleet([wide()], [{ shape: { fabric: "ib" } }, { shape: { fabric: "ib" } }]);
  sim.run(20_000);
  const replica = one(of(sim, "w"));
  const actions = recorded(sim);
  sim.nodes.get("n2")?.crash(`${replica.id}-1`, "out_of_memory", sim.now);
  sim.run(1_500);
  const failure = actions.find((action) => action.kind === "fail_replica");
  equal(failure?.reason, "shard_failed");
  match(failure?.message ?? "", /n2: out_of_memory/);
  deepEqual(actions.filter((action) => action.kind === "stop_shard").map((each) => each.node), [
    "n1",
  ]);
  sim.run(30_000);
  const rebuilt = one(of(sim, "w"));
  ok(rebuilt.id !== replica.id && rebuilt.readyAt !== undefined);
});

Deno.test("reconcile() backs off a model that fails to start, longer each time, until it starts", () => {
  const sim = fleet([small()], [{ loadMs: 60_000 }]);
  const actions = recorded(sim);
  const starts: number[] = [];
  const waits: number[] = [];
  for (let failed = 1; failed <= 4; failed++) {
    while (of(sim).every((replica) => replica.failure !== undefined)) sim.step();
    starts.push(sim.now);
    sim.run(3_000);
    sim.nodes.get("n1")?.crash(`${one(of(sim)).id}-0`, "exited", sim.now);
    sim.run(1_000);
    const record = sim.world.models.get("m");
    equal(record?.failedStarts, failed);
    waits.push((record?.backoffUntil ?? 0) - sim.now);
  }
  ok(waits.every((wait, index) => index === 0 || wait > (waits[index - 1] ?? 0)), `${waits}`);
  deepEqual(whys(sim.lastPlan), ["m backoff"]);
  sim.run(100_000);
  equal(sim.world.models.get("m")?.failedStarts, 0);
  equal(actions.filter((action) => action.kind === "place_replica").length, 5);
});

Deno.test("reconcile() rebuilds what ran on a lost node, cordoned or not, and keeps it until then", () => {
  for (const kind of ["cordon", "uncordon"] as const) {
    const sim = fleet([small()]);
    sim.run(20_000);
    const [home = ""] = nodesOf(one(of(sim)));
    sim.dispatch({ kind, node: home, by: "ops", reason: "" });
    const before = one(of(sim)).id;
    sim.silence(home, 200_000);
    sim.run(40_000);
    deepEqual(of(sim).map((replica) => replica.id), [before]);
    ok(sim.world.published.endpoints.has(before), "an unreachable node keeps its endpoints");
    sim.run(40_000);
    equal(sim.world.published.removed.get(before), "lost");
    const rebuilt = of(sim).find((replica) => replica.id !== before);
    ok(rebuilt?.readyAt !== undefined && !nodesOf(rebuilt).includes(home));
  }
});

Deno.test("reconcile() stops what a returned node still runs and was rebuilt elsewhere", () => {
  const sim = fleet([small()]);
  sim.run(20_000);
  const stale = one(of(sim));
  const [home = ""] = nodesOf(stale);
  sim.silence(home, 100_000);
  sim.run(95_000);
  const actions = recorded(sim);
  deepEqual(runningOn(sim, home), [stale.id]);
  sim.run(40_000);
  const retired = actions.find((action) => action.kind === "retire_replica");
  deepEqual([retired?.replica, retired?.reason], [stale.id, "rebuilt_elsewhere"]);
  deepEqual(runningOn(sim, home), []);
  equal(of(sim).length, 1);
  deepEqual(sim.violations, []);
});

Deno.test("a degraded replica stays an endpoint, and routers hear that it is doubted", () => {
  const sim = fleet([small()], [{}]);
  sim.run(20_000);
  const replica = one(of(sim));
  const shard = one(replica.shards).id;
  for (const doubted of [true, false]) {
    sim.nodes.get("n1")?.doubt(shard, doubted, sim.now);
    sim.run(2_000);
    equal(sim.world.published.endpoints.get(replica.id)?.degraded, doubted);
    deepEqual(of(sim).map((each) => each.id), [replica.id]);
  }
});

Deno.test("reconcile() keeps a returned replica when nothing could be rebuilt elsewhere", () => {
  const sim = fleet([small()], [{}]);
  sim.run(20_000);
  const replica = one(of(sim));
  sim.silence("n1", 100_000);
  sim.run(120_000);
  deepEqual(of(sim).map((each) => each.id), [replica.id]);
  deepEqual(runningOn(sim, "n1"), [replica.id]);
  ok(sim.world.published.endpoints.has(replica.id));
});

Deno.test("reconcile() starts the replacement first when a node is drained", () => {
  const sim = fleet([small()]);
  sim.run(20_000);
  const old = one(of(sim));
  const [home = ""] = nodesOf(old);
  const actions = recorded(sim);
  sim.dispatch({ kind: "drain", node: home, by: "ops", reason: "disk" });
  sim.run(60_000);
  const kinds = actions.map((action) =>
    `${action.kind} ${action.replica === old.id ? "old" : "new"}`
  );
  deepEqual(kinds, [
    "retire_replica old",
    "place_replica new",
    "start_shard new",
    "drain_replica old",
    "stop_replica old",
    "stop_shard old",
    "forget_replica old",
  ]);
  deepEqual(runningOn(sim, home), []);
  deepEqual(sim.violations, []);
});

Deno.test("reconcile() drains anyway when there is no room for a replacement, and says so", () => {
  const sim = fleet([small()], [{}]);
  sim.run(20_000);
  const actions = recorded(sim);
  sim.dispatch({ kind: "drain", node: "n1", by: "ops", reason: "" });
  sim.run(60_000);
  const drained = actions.find((action) => action.kind === "drain_replica");
  equal(drained?.detail, "no room for a second copy: 0/1 nodes fit: 1 draining");
  deepEqual(runningOn(sim, "n1"), []);
  deepEqual(whys(sim.lastPlan), ["m no_room"]);
});

Deno.test("reconcile() takes a drain back when the node is uncordoned in time", () => {
  const sim = fleet([small()], [{}, { loadMs: 60_000 }]);
  sim.run(90_000);
  const old = one(of(sim));
  const [home = ""] = nodesOf(old);
  sim.dispatch({ kind: "drain", node: home, by: "ops", reason: "" });
  sim.run(1_000);
  ok(of(sim).some((replica) => replica.retiring !== undefined));
  sim.dispatch({ kind: "uncordon", node: home, by: "ops" });
  sim.run(60_000);
  deepEqual(of(sim).map((replica) => replica.id), [old.id]);
});

Deno.test("reconcile() waits for a replacement no longer than drain_grace", () => {
  const sim = fleet([small()], [{ loadMs: 1_000 }, { loadMs: 110_000 }]);
  sim.run(130_000);
  const old = one(of(sim));
  const [home = ""] = nodesOf(old);
  equal(home, "n1");
  const actions = recorded(sim);
  sim.dispatch({ kind: "drain", node: home, by: "ops", reason: "" });
  sim.run(SIM_TIMINGS.drainGraceMs - 5_000);
  deepEqual(actions.filter((action) => action.kind === "drain_replica"), []);
  sim.run(6_000);
  const drained = actions.find((action) => action.kind === "drain_replica");
  equal(drained?.detail, "no replacement was ready within 1m");
});

Deno.test("reconcile() replaces replicas of a changed profile one at a time, never below min", () => {
  const sim = fleet([small({ scaling: { min: 3 } })]);
  sim.run(30_000);
  sim.apply(catalog(small({ scaling: { min: 3 } }, { args: ["--enforce-eager"] })));
  let fewest = 3;
  let most = 0;
  for (let step = 0; step < 600; step++) {
    sim.step();
    const live = of(sim).filter((replica) => replica.stopping === undefined);
    fewest = Math.min(
      fewest,
      live.filter((each) => each.readyAt !== undefined && each.draining === undefined).length,
    );
    most = Math.max(most, live.length);
  }
  equal(fewest, 3);
  equal(most, 4);
  const profile = sim.world.catalog.catalog.models[0]?.profiles[0];
  deepEqual(of(sim).map((replica) => replica.shards[0]?.spec.args), Array(3).fill(profile?.args));
  deepEqual(sim.violations, []);
});

Deno.test("reconcile() lets the old engine make room for a changed profile when there is none", () => {
  const sim = fleet([small({}, { tp: 8 })], [{}]);
  sim.run(20_000);
  const actions = recorded(sim);
  sim.apply(catalog(small({}, { tp: 8, args: ["--enforce-eager"] })));
  sim.run(60_000);
  const drained = actions.find((action) => action.kind === "drain_replica");
  match(drained?.detail ?? "", /^no room for a second copy, so it makes room: 0\/1 nodes fit/);
  deepEqual(one(of(sim)).shards[0]?.spec.args, ["--enforce-eager"]);
});

Deno.test("reconcile() keeps the old engine when the changed profile would fit nowhere", () => {
  const sim = fleet([small({}, { tp: 8 })], [{}]);
  sim.run(20_000);
  const old = one(of(sim)).id;
  sim.apply(catalog(small({}, { tp: 16, gpus_per_node: 16 })));
  sim.run(400_000);
  deepEqual(of(sim).map((replica) => replica.id), [old]);
  equal(sim.world.published.endpoints.get(old)?.draining, false);
});

Deno.test("reconcile() touches no engine when only weight, priority or names change", () => {
  const sim = fleet([small()]);
  sim.run(20_000);
  const { id } = one(of(sim));
  const actions = recorded(sim);
  const changed = small({ aliases: ["em"] }, { name: "renamed", weight: 7, priority: 3 });
  sim.apply(catalog(changed));
  sim.run(20_000);
  deepEqual(actions, []);
  const endpoint = sim.world.published.endpoints.get(id);
  deepEqual([endpoint?.weight, endpoint?.priority, endpoint?.profile], [7, 3, "renamed"]);
  deepEqual(sim.world.published.models.get("m")?.aliases, ["em"]);
});

Deno.test("reconcile() drains and stops a model that left the catalog", () => {
  const sim = fleet([small()]);
  sim.run(20_000);
  const actions = recorded(sim);
  sim.apply(catalog());
  sim.run(30_000);
  equal(actions.find((action) => action.kind === "drain_replica")?.reason, "model_removed");
  equal(of(sim).length, 0);
  deepEqual([...sim.nodes.values()].flatMap((node) => node.running()), []);
  deepEqual(sim.violations, []);
});

Deno.test("reconcile() stops a replica that stays partial after a restart of control", () => {
  const sim = fleet([wide()], [{ shape: { fabric: "ib" } }, { shape: { fabric: "ib" } }]);
  sim.run(20_000);
  const { id } = one(of(sim, "w"));
  sim.nodes.get("n2")?.shards.clear();
  const actions = recorded(sim);
  sim.restartControl();
  sim.run(60_000);
  const failure = actions.find((action) => action.kind === "fail_replica");
  deepEqual([failure?.replica, failure?.reason, failure?.counts], [id, "partial", false]);
  ok(one(of(sim, "w")).id !== id);
  deepEqual(sim.violations, []);
});

Deno.test("reconcile() fails a replica that is not ready by its startup_timeout", () => {
  const sim = fleet([small({}, { startup_timeout: "30s" })], [{ loadMs: 300_000 }]);
  const actions = recorded(sim);
  sim.run(40_000);
  const failure = actions.find((action) => action.kind === "fail_replica");
  equal(failure?.reason, "startup_timeout");
  match(failure?.message ?? "", /^not ready after 30s; last seen: loading$/);
});

Deno.test("reconcile() leaves alone what a newer agent says in words that it does not know", () => {
  const sim = fleet([small()]);
  sim.run(20_000);
  const replica = one(of(sim));
  const shard = one(replica.shards);
  const wire = sim.nodes.get(shard.node)?.register(sim.now).shards[0]?.status;
  ok(wire !== undefined);
  const newer: number = 4_711;
  sim.dispatch({ kind: "shard_status", node: shard.node, status: { ...wire, state: newer } });
  const actions = recorded(sim);
  sim.run(30_000);
  deepEqual(actions, []);
  deepEqual(whys(sim.lastPlan), [`${shard.id} unknown_state`]);
  ok(sim.world.published.endpoints.has(replica.id));
});

Deno.test("reconcile() starts the workers of a Ray launch once the leader is past its checks", () => {
  const ray = small({ name: "w" }, { tp: 8, pp: 2, nodes: 2, launch_mode: "ray" });
  const sim = fleet([ray], [{ shape: { fabric: "ib" } }, { shape: { fabric: "ib" } }]);
  const actions = recorded(sim);
  sim.run(20_000);
  const starts = actions.filter((action) => action.kind === "start_shard");
  deepEqual(starts.map((start) => start.spec.rank), [0, 1]);
  ok((starts[0]?.revision.sequence ?? 0) < (starts[1]?.revision.sequence ?? 0));
  ok(one(of(sim, "w")).readyAt !== undefined);
});

Deno.test("reconcile() starts all ranks of other launches at once, with one revision", () => {
  const sim = fleet([wide()], [{ shape: { fabric: "ib" } }, { shape: { fabric: "ib" } }]);
  const actions = recorded(sim);
  sim.run(2_000);
  const starts = actions.filter((action) => action.kind === "start_shard");
  deepEqual(starts.map((start) => start.spec.rank), [0, 1]);
  deepEqual(starts[0]?.revision, starts[1]?.revision);
});

Deno.test("reconcile() holds everything about a paused model but the cleaning up", () => {
  const sim = fleet([small({ scaling: { min: 2 } })]);
  sim.run(20_000);
  sim.dispatch({ kind: "pause", model: "m", by: "ops", reason: "benchmark" });
  const [victim] = of(sim);
  ok(victim !== undefined);
  sim.nodes.get(nodesOf(victim)[0] ?? "")?.crash(`${victim.id}-0`, "exited", sim.now);
  sim.run(60_000);
  equal(of(sim).length, 1);
  deepEqual(whys(sim.lastPlan), ["m paused"]);
  sim.dispatch({ kind: "resume", model: "m", by: "ops" });
  sim.run(20_000);
  equal(of(sim).length, 2);
});

Deno.test("reconcile() follows an operator's scale until it is cleared", () => {
  const sim = fleet([small()]);
  sim.run(20_000);
  sim.dispatch({ kind: "scale", model: "m", replicas: 3, by: "ops", reason: "launch" });
  sim.run(20_000);
  equal(of(sim).length, 3);
  sim.dispatch({ kind: "scale", model: "m", replicas: 0, by: "ops", reason: "off" });
  sim.run(40_000);
  equal(of(sim).length, 0);
  sim.dispatch({ kind: "clear_scale", model: "m", by: "ops" });
  sim.run(20_000);
  equal(of(sim).length, 1);
});

Deno.test("reconcile() wakes a sleeping model when it is asked for, and lets it sleep again", () => {
  const sim = fleet([small({ scaling: { min: 0 } })]);
  sim.run(20_000);
  equal(of(sim).length, 0);
  equal(sim.world.published.models.get("m")?.wakeable, true);
  sim.dispatch({ kind: "wake", model: "m" });
  sim.run(20_000);
  equal(of(sim).length, 1);
  // The router sends requests of its own accord; without any the model goes to sleep.
  sim.router.quiet = true;
  sim.run(SIM_TIMINGS.idleMs + SIM_TIMINGS.drainGraceMs);
  equal(of(sim).length, 0);
});

Deno.test("reconcile() sends a lost command again, and takes a stale answer as a reason to renew it", () => {
  const sim = fleet([small()], [{}]);
  sim.run(1_000);
  sim.wires.loss = 1;
  sim.dispatch({ kind: "scale", model: "m", replicas: 2, by: "ops", reason: "" });
  sim.run(2_000);
  sim.wires.loss = 0;
  const sent = of(sim).flatMap((replica) => replica.shards).find((shard) =>
    shard.status === undefined
  );
  ok(sent?.command !== undefined);
  const actions = recorded(sim);
  sim.run(15_000);
  const again = actions.find((action) => action.kind === "start_shard");
  deepEqual(again?.revision, sent.command.revision);
  equal(of(sim).filter((replica) => replica.readyAt !== undefined).length, 2);
});

Deno.test("reconcile() places the higher priority first, and the other when that does not fit", () => {
  const two = {
    name: "m",
    source: "org/w",
    scaling: { min: 2 },
    profiles: [
      { name: "any", gpu_class: "a100-80g" },
      { name: "best", gpu_class: "h100-80g", priority: 5 },
    ],
  };
  const sim = fleet([two], [{ shape: { gpus: 1 } }, { shape: { gpus: 4, gpuClass: "a100-80g" } }]);
  sim.run(20_000);
  deepEqual(of(sim).map((replica) => replica.profile).sort(), ["any", "best"]);
});

Deno.test("reconcile() drops what it knew of a node that an operator forgets", () => {
  const sim = fleet([small()]);
  sim.run(20_000);
  const [home = ""] = nodesOf(one(of(sim)));
  sim.silence(home, 10_000_000);
  sim.dispatch({ kind: "stream_closed", node: home });
  sim.run(90_000);
  equal(of(sim).length, 2);
  sim.dispatch({ kind: "forget_node", node: home, by: "ops" });
  sim.run(1_000);
  equal(of(sim).length, 1);
  equal(sim.world.knownNodes.has(home), false);
});
