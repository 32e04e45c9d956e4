import { deepEqual, equal, match, ok } from "node:assert/strict";
import type { Plain } from "@heddle/proto/plain";
import type { Inventory } from "@heddle/proto/gen/types";
import { observe } from "../observing/observe.ts";
import type { Action } from "../plan.ts";
import { catalog, firstProfile, modelOf, registered, T0, worldWith } from "../testing/builders.ts";
import { FakeNode } from "../testing/fake_node.ts";
import { SIM_TIMINGS, Simulation } from "../testing/simulation.ts";
import { explainModel } from "../views/explain.ts";
import type { Replica, World } from "../world.ts";
import { blockedBy, failedOn, stillBlocked } from "./circumstance.ts";
import { modelReason } from "./model_reason.ts";

/** A quiet fleet whose engines take a minute to load. */
function fleet(models: readonly object[], names: readonly string[] = ["n1"]): Simulation {
  return new Simulation({
    seed: 1,
    known: true,
    catalog: catalog(...models),
    nodes: names.map((name) => new FakeNode({ name, shape: {}, loadMs: 60_000, stopMs: 500 })),
  });
}

const small = (rest: object = {}, profile: object = {}) => ({
  name: "m",
  source: "org/w",
  profiles: [{ name: "p", gpu_class: "h100-80g", ...profile }],
  ...rest,
});
const of = (sim: Simulation): readonly Replica[] => [...sim.world.replicas.values()];

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

/** The model's engine fails for good, as its agent tells it. */
function failForGood(sim: Simulation, reason: string): Replica {
  const replica = one(of(sim).filter((each) => each.failure === undefined));
  const shard = one(replica.shards);
  sim.dispatch({
    kind: "shard_status",
    node: shard.node,
    status: {
      shardId: shard.id,
      replicaId: replica.id,
      state: 9,
      attempt: 1,
      reason,
      message: `what ${reason} means`,
      permanent: true,
      address: "",
      apiKey: "",
      logTail: [],
      inStateMs: 0n,
      progress: "",
    },
  });
  sim.nodes.get(shard.node)?.crash(shard.id, reason, sim.now);
  return replica;
}

const placedNodes = (actions: readonly Action[]) =>
  actions.flatMap((action) =>
    action.kind === "place_replica" ? [action.shards.map(({ node }) => node).join()] : []
  );

Deno.test("reconcile() does not try a profile's permanent failure again until the profile changes", () => {
  const sim = fleet([small()]);
  sim.run(5_000);
  failForGood(sim, "model_architecture_unknown");
  // A machine that restarts says nothing of a model that its engine does not know.
  sim.restartMachine("n1");
  const actions = recorded(sim);
  sim.run(900_000);
  deepEqual(placedNodes(actions), []);
  const wait = sim.lastPlan?.waiting.find((each) => each.id === "m");
  equal(wait?.why, "blocked");
  match(wait?.detail ?? "", /what model_architecture_unknown means.*is tried again when/);
  sim.apply(catalog(small({}, { engine_version: "0.28.1" })));
  sim.run(1_000);
  deepEqual(placedNodes(actions), ["n1"]);
});

Deno.test("reconcile() keeps a profile from the one node that it fails on for good, not from others", () => {
  const sim = fleet([small()], ["n1", "n2"]);
  sim.run(5_000);
  const actions = recorded(sim);
  failForGood(sim, "driver_too_old");
  sim.run(300_000);
  deepEqual(placedNodes(actions), ["n2"]);
  ok(one(of(sim)).readyAt !== undefined);
});

Deno.test("reconcile() tries a node's permanent failure again when the machine restarted, and says so before", () => {
  const sim = fleet([small()]);
  sim.run(5_000);
  failForGood(sim, "driver_too_old");
  const actions = recorded(sim);
  sim.run(900_000);
  deepEqual(placedNodes(actions), []);
  deepEqual(sim.lastPlan?.waiting.map(({ id, why }) => `${id} ${why}`), ["m no_room"]);
  const told = modelReason(sim.world, one(sim.world.catalog.catalog.models), sim.now);
  match(told, /1 failed_here; cannot start on n1: .*what driver_too_old means/);
  match(told, /tried on n1 again when that machine restarts, .*models retry m$/);
  sim.restartMachine("n1");
  sim.run(120_000);
  deepEqual(placedNodes(actions), ["n1"]);
});

const model = modelOf({ name: "m", source: "/models/m" });
const profile = firstProfile(model);

interface Mend {
  readonly boot?: string;
  readonly inventory?: Partial<Plain<Inventory>>;
}

/** Whether the profile, after it failed on n1 for this reason, is blocked there once n1 is so. */
function blockedAfter(reason: string, mended: Mend, node = "n1"): boolean {
  const world = worldWith([model], { n1: {}, n2: {} });
  const cause = { reason, node: "n1" };
  const blocked = blockedBy(world, { model, profile, cause, message: "" });
  const event = registered(node, {}, mended.boot === undefined ? {} : { bootId: mended.boot });
  const inventory = { ...event.inventory, ...mended.inventory };
  return stillBlocked(observe(world, { ...event, inventory }, T0), model, blocked);
}

const engine = (version: string, path: string) => [{ name: "vllm", version, path, problems: [] }];
const problem = (reason: string) => [{ reason, detail: "", remedy: "" }];
const disk = (gib: number) => [{
  path: "/var/lib/heddle/models",
  freeBytes: BigInt(gib) * 2n ** 30n,
  shared: false,
}];

Deno.test("what mends a node lets its failures be tried there again, and nothing else does", () => {
  const mended: readonly Mend[] = [
    { boot: "boot-2" },
    { inventory: { driverVersion: "590.1" } },
    { inventory: { engines: engine("0.28.1", "/opt/other") } },
    { inventory: { engines: engine("0.29.0", "/opt/heddle/engines/vllm-0.28.1") } },
    { inventory: { problems: problem("nvidia_smi_denied") } },
    { inventory: { modelFiles: [{ path: "/models/m", sizeBytes: 1n }] } },
  ];
  for (const reason of ["driver_too_old", "fabric_manager_down", "library_missing", "disk_full"]) {
    equal(blockedAfter(reason, {}), true, reason);
    for (const mend of mended) {
      equal(blockedAfter(reason, mend), false, reason);
      equal(blockedAfter(reason, mend, "n2"), true, `${reason}: another node was mended`);
    }
    equal(blockedAfter(reason, { inventory: { problems: problem("gpu_throttled") } }), true);
  }
});

Deno.test("room on a disk mends what ran out of it, and only that", () => {
  equal(blockedAfter("disk_full", { inventory: { modelDirs: disk(4_000) } }), false);
  // By powers of two: a few GiB are no room for another model.
  equal(blockedAfter("disk_full", { inventory: { modelDirs: disk(1_100) } }), true);
  equal(blockedAfter("driver_too_old", { inventory: { modelDirs: disk(4_000) } }), true);
});

Deno.test("a node that went away was not mended: it is looked at when it is back", () => {
  const world = worldWith([model], { n1: {} });
  const cause = { reason: "driver_too_old", node: "n1" };
  const record = {
    failedStarts: 1,
    blocked: [blockedBy(world, { model, profile, cause, message: "too old" })],
  };
  deepEqual([...failedOn(world, record, { model, profile })], [["n1", "too old"]]);
  const back = observe(worldWith([model], {}), registered("n1"), T0);
  deepEqual([...failedOn(back, record, { model, profile })], [["n1", "too old"]]);
});

Deno.test("explain names the node, what happened there and what helps", () => {
  const sim = fleet([small()], ["n1", "n2"]);
  sim.run(5_000);
  failForGood(sim, "hostname_is_loopback");
  sim.run(1_000);
  const { summary, rejections } = explainModel(sim.world, "m", sim.now);
  match(summary, /profile p cannot start on n1: .*hostname_is_loopback.*models retry m/);
  deepEqual(rejections.filter(({ reason }) => reason === "failed_here").map(({ node }) => node), [
    "n1",
  ]);
});

Deno.test("a restart of control does not make what failed for good be tried again", () => {
  for (const reason of ["model_architecture_unknown", "driver_too_old"]) {
    const sim = fleet([small()]);
    sim.run(5_000);
    failForGood(sim, reason);
    sim.run(5_000);
    const actions = recorded(sim);
    for (let restart = 0; restart < 3; restart++) {
      sim.restartControl();
      sim.run(300_000);
    }
    deepEqual(placedNodes(actions), [], reason);
    match(modelReason(sim.world, one(sim.world.catalog.catalog.models), sim.now), /models retry m/);
    sim.dispatch({ kind: "retry", model: "m", by: "ops" });
    sim.restartControl();
    sim.run(60_000);
    deepEqual(placedNodes(actions), ["n1"], reason);
  }
});

Deno.test("what was mended while no control led lets the next one try again", () => {
  const sim = fleet([small()]);
  sim.run(5_000);
  failForGood(sim, "driver_too_old");
  sim.run(5_000);
  const actions = recorded(sim);
  sim.nodes.get("n1")?.restartMachine(sim.now);
  sim.restartControl();
  sim.run(60_000);
  deepEqual(placedNodes(actions), ["n1"]);
});

Deno.test("a model that crashes is not started at once by a new control", () => {
  const sim = fleet([small()]);
  sim.run(5_000);
  for (let failure = 0; failure < 4; failure++) {
    const replica = one(of(sim).filter((each) => each.failure === undefined));
    sim.nodes.get("n1")?.crash(one(replica.shards).id, "exited", sim.now);
    sim.run(25_000);
  }
  const { failedStarts } = sim.world.models.get("m") ?? {};
  ok(failedStarts === 4, `${failedStarts} failed starts`);
  const replica = one(of(sim).filter((each) => each.failure === undefined));
  sim.nodes.get("n1")?.crash(one(replica.shards).id, "exited", sim.now);
  sim.run(1_000);
  const actions = recorded(sim);
  sim.restartControl();
  const { maxMs } = SIM_TIMINGS.backoff;
  sim.run(maxMs / 2 - 1_000);
  deepEqual(placedNodes(actions), []);
  sim.run(maxMs / 2 + 2_000);
  deepEqual(placedNodes(actions), ["n1"]);
  equal(sim.world.models.get("m")?.failedStarts, 5);
  sim.run(120_000);
  equal(sim.world.models.get("m")?.failedStarts, 0);
});

/** Whether a profile that failed for good with n1 and n2 there is so for a new control that hears `told`. */
function heldAfterRestart(
  told: readonly string[],
  known: readonly string[],
  engines: Readonly<Record<string, string>> = {},
): boolean {
  const weights = { modelFiles: [{ path: "/models/m", sizeBytes: 1n }], modelFilesPresent: true };
  const tell = (name: string, versions: Readonly<Record<string, string>> = {}) => {
    const event = registered(name);
    const version = versions[name];
    return {
      ...event,
      inventory: {
        ...event.inventory,
        ...weights,
        ...(version === undefined ? {} : { engines: engine(version, `/opt/${version}`) }),
      },
    };
  };
  const before = ["n1", "n2"].reduce(
    (so, name) => observe(so, tell(name), T0),
    worldWith([model], {}),
  );
  const cause = { reason: "model_architecture_unknown", node: "n1" };
  const blocked = blockedBy(before, { model, profile, cause, message: "" });
  const anew = { ...worldWith([model], {}), knownNodes: new Set(known) };
  const heard = told.reduce<World>((so, name) => observe(so, tell(name, engines), T0), anew);
  return stillBlocked(heard, model, blocked);
}

Deno.test("a node that a new control has not heard may be as it was; one that is given up is not", () => {
  const both = ["n1", "n2"];
  equal(heldAfterRestart([], both), true);
  equal(heldAfterRestart(["n1"], both), true);
  equal(heldAfterRestart(both, both), true);
  equal(heldAfterRestart(["n1"], ["n1"]), false, "the weights of n2 are gone with it");
  equal(heldAfterRestart(["n1"], both, { n1: "0.29.0" }), false, "another version is news at once");
  equal(heldAfterRestart([...both, "n3"], [...both, "n3"]), false, "weights on another node");
});
