import { deepEqual, equal, ok } from "node:assert/strict";
import type { Heartbeat } from "@heddle/proto/gen/agent";
import type { Plain } from "@heddle/proto/plain";
import type { HeartbeatSeen } from "../event.ts";
import {
  catalog,
  gpu,
  inventory,
  modelOf,
  registered,
  T0,
  world,
  worldWith,
} from "../testing/builders.ts";
import { FakeNode } from "../testing/fake_node.ts";
import { Simulation } from "../testing/simulation.ts";
import { matters } from "./matters.ts";
import { observe } from "./observe.ts";

function beat(node: string, change: Partial<Plain<Heartbeat>> = {}): HeartbeatSeen {
  return {
    kind: "heartbeat",
    node,
    heartbeat: {
      gpus: [],
      hcas: [],
      fabrics: [],
      hardwarePresent: false,
      modelDirs: [],
      modelFiles: [],
      modelFilesPresent: false,
      engines: [],
      enginesPresent: false,
      problems: [],
      loads: [],
      ...change,
    },
  };
}

Deno.test("observe() keeps lists that a node has no news about, and drops those it says are empty", () => {
  const shape = { modelFiles: [["/models/a", 1]] as const };
  let so = observe(world(), registered("n1", shape), T0);
  const quiet = registered("n1");
  const noNews = {
    ...quiet.inventory,
    modelFiles: [],
    modelFilesPresent: false,
    engines: [],
    enginesProbed: false,
  };
  so = observe(so, { ...quiet, inventory: noNews }, T0);
  equal(so.nodes.get("n1")?.inventory.modelFiles.length, 1);
  equal(so.nodes.get("n1")?.inventory.engines.length, 4);
  so = observe(so, beat("n1", { modelFilesPresent: true }), T0);
  equal(so.nodes.get("n1")?.inventory.modelFiles.length, 0);
  so = observe(so, beat("n1", { enginesPresent: true }), T0);
  equal(so.nodes.get("n1")?.inventory.engines.length, 0);
});

Deno.test("observe() keeps a node's last load where a heartbeat has none, and plans nothing for it", () => {
  let so = observe(world(), registered("n1"), T0);
  const load = { load1m: 3, shards: [{ shardId: "r1-0", cpuPercent: 250 }] };
  const told = beat("n1", { load });
  equal(matters(so, told, T0), false);
  so = observe(so, told, T0);
  deepEqual(so.nodes.get("n1")?.inventory.load, load);
  so = observe(so, beat("n1"), T0);
  deepEqual(so.nodes.get("n1")?.inventory.load, load);
});

Deno.test("observe() ignores a heartbeat of a node that has not registered", () => {
  const so = world();
  equal(observe(so, beat("n1"), T0), so);
});

Deno.test("observe() raises the term above what a new agent has accepted, once", () => {
  const highestRevision = { term: 7, sequence: 3 };
  const so = observe(world(), registered("n1", {}, { highestRevision }), T0);
  equal(so.term, 8);
  const own = { term: 8, sequence: 0 };
  equal(observe(so, registered("n1", {}, { highestRevision: own }), T0).term, 8);
  const foreign = { term: 8, sequence: 40 };
  equal(observe(so, registered("n1", {}, { highestRevision: foreign }), T0).term, 9);
});

Deno.test("observe() raises the term above what a router has applied from another control", () => {
  const so = observe(world(), {
    kind: "router_report",
    router: "r/1",
    version: "",
    instance: "",
    applied: { term: 4, sequence: 1 },
    replicas: new Map(),
    models: new Map(),
  }, T0);
  equal(so.term, 5);
});

Deno.test("observe() lets an operator's decision outlive a registration of its node", () => {
  let so = worldWith([], { n1: {} });
  so = observe(so, { kind: "cordon", node: "n1", by: "ops", reason: "fan" }, T0);
  so = observe(so, registered("n1", {}, { agentInstance: "agent-2" }), T0 + 1);
  deepEqual(so.decisions.nodes.get("n1"), { kind: "cordon", by: "ops", reason: "fan", at: T0 });
});

Deno.test("matters() is true for a heartbeat only where it can change a decision", () => {
  const so = worldWith([modelOf({ name: "m" })], { n1: { gpus: 1 } });
  const healthy = { ...gpu("n1", 0), temperatureCelsius: 71, memoryUsedMib: 40_000 };
  const sick = { ...healthy, problems: [{ reason: "xid_fatal", detail: "", remedy: "" }] };
  equal(matters(so, beat("n1"), T0), false);
  const cards = (...gpus: readonly typeof sick[]) => beat("n1", { hardwarePresent: true, gpus });
  equal(matters(so, cards({ ...healthy, problems: [] }), T0), false);
  equal(matters(so, cards(sick), T0), true);
  equal(matters(so, beat("n1"), T0 + 15_000), true);
  equal(matters(so, beat("n1", { enginesPresent: true }), T0), true);
});

Deno.test("matters() is true for what a node says of itself while a start there waits for a repair", () => {
  const so = worldWith([modelOf({ name: "m" })], { n1: {}, n2: {} });
  const blocked = [{
    profile: "p",
    node: "n1",
    reason: "disk_full",
    fingerprint: "",
    told: [],
    message: "",
  }];
  const waits = { ...so, models: new Map([["m", { failedStarts: 1, blocked }]]) };
  const disk = { path: "/var/lib/heddle/models", freeBytes: 1n, shared: false };
  equal(matters(so, beat("n1", { modelDirs: [disk] }), T0), false);
  equal(matters(waits, beat("n1", { modelDirs: [disk] }), T0), true);
  equal(matters(waits, beat("n2", { modelDirs: [disk] }), T0), false);
  const hardware = ({ gpus, hcas, fabrics } = inventory("n1")) => ({
    hardwarePresent: true,
    gpus,
    hcas,
    fabrics,
  });
  equal(matters(so, beat("n1", hardware()), T0), false);
  equal(matters(waits, beat("n1", hardware()), T0), true);
});

Deno.test("observe() forgets with a node what failed there for good, and nothing else", () => {
  const as = { fingerprint: "f", told: [] };
  const at = (node: string) => ({ profile: "p", node, message: "no driver", ...as });
  const everywhere = { profile: "q", message: "no such quantisation", ...as };
  const world = {
    ...worldWith([modelOf({ name: "m" })], { n2: {} }),
    models: new Map([["m", { failedStarts: 1, blocked: [at("n1"), at("n2"), everywhere] }]]),
  };
  const known = { ...world, knownNodes: new Set(["n1", "n2"]) };
  const { models } = observe(known, { kind: "forget_node", node: "n1", by: "ops" }, T0);
  deepEqual(models.get("m")?.blocked, [at("n2"), everywhere]);
});

Deno.test("observe() starts nothing from a router's count of requests for a model that sleeps", () => {
  const report = (requests: number) => ({
    kind: "router_report" as const,
    router: "r/1",
    version: "",
    instance: "",
    applied: { term: 0, sequence: 0 },
    replicas: new Map(),
    models: new Map([["m", { waiting: 1, requests, failures: 0 }]]),
  });
  const so = observe(world([modelOf({ name: "m", scaling: { min: 0 } })]), report(9), T0);
  equal(so.models.get("m")?.demandAt, undefined);
  ok(observe(so, { kind: "wake", model: "m" }, T0).models.get("m")?.demandAt === T0);
});

Deno.test("observe() hears the end of a second copy of a shard that two nodes report", () => {
  const sim = new Simulation({
    seed: 1,
    nodes: ["n1", "n2"].map((name) =>
      new FakeNode({ name, shape: {}, loadMs: 1_000, stopMs: 500 })
    ),
    catalog: catalog({
      name: "m",
      source: "org/w",
      profiles: [{ name: "p", gpu_class: "h100-80g" }],
    }),
  });
  sim.run(10_000);
  const [replica] = sim.world.replicas.values();
  const [shard] = replica?.shards ?? [];
  ok(replica !== undefined && shard !== undefined);
  const other = sim.nodes.get(shard.node === "n1" ? "n2" : "n1");
  ok(other !== undefined);
  other.command({
    kind: "start_shard",
    shard: shard.id,
    replica: replica.id,
    node: other.name,
    spec: shard.spec,
    revision: { term: 1, sequence: 1 },
  }, sim.now);
  sim.run(5_000);
  sim.restartAgent(other.name);
  sim.run(30_000);
  equal(other.running().length, 0);
  deepEqual([...sim.world.replicas.keys()], [replica.id]);
  deepEqual(sim.violations, []);
});
