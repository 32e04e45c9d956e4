/** A random cluster, a random catalog and random faults, all from one seed. */
import type { Catalog } from "../catalog.ts";
import { DEFAULT_TIMINGS } from "../timings.ts";
import { catalog } from "./builders.ts";
import { FakeNode } from "./fake_node.ts";
import { type Random, randomOf } from "./random.ts";
import { Simulation } from "./simulation.ts";

const CLASSES = ["h100-80g", "a100-80g"] as const;
const FABRICS = ["ib-a", "ib-b", undefined] as const;

export function scenario(seed: number): Simulation {
  const random = randomOf(seed ^ 0x5eed);
  const count = random.int(1, 7);
  const nodes = Array.from({ length: count }, (_, index) => {
    const fabric = random.pick(FABRICS);
    return new FakeNode({
      name: `n${index + 1}`,
      shape: {
        gpus: random.pick([2, 4, 8]),
        gpuClass: random.pick(CLASSES),
        cliqueSize: random.pick([0, 2, 4, 8]),
        ...(fabric === undefined ? {} : { fabric, hcas: random.pick([4, 4, 8]) }),
        portBlocks: random.pick([2, 4, 40]),
      },
      loadMs: random.int(500, 20_000),
      stopMs: random.int(100, 5_000),
    });
  });
  return new Simulation({ seed, nodes, catalog: randomCatalog(random, random.int(1, 4)) });
}

export function randomCatalog(random: Random, count: number): Catalog {
  return catalog(...Array.from({ length: count }, (_, index) => {
    const nodes = random.chance(0.3) ? 2 : 1;
    const tp = random.pick([1, 1, 2, 4]);
    return {
      name: `m${index + 1}`,
      source: "org/weights",
      scaling: { min: random.int(1, 2), max: 4 },
      profiles: CLASSES.map((gpuClass) => ({
        name: gpuClass,
        gpu_class: gpuClass,
        tp,
        pp: nodes,
        nodes,
        launch_mode: random.pick(["mp", "ray"]),
        args: random.chance(0.5) ? ["--max-model-len", "4096"] : [],
        startup_timeout: "2m",
        priority: random.int(0, 1),
      })),
    };
  }));
}

/** Faults for `ms`, one every few seconds, then everything is mended and left alone. */
export function trouble(sim: Simulation, ms: number): void {
  const { random } = sim;
  sim.loss = random.pick([0, 0.05, 0.3]);
  for (const end = sim.now + ms; sim.now < end;) {
    sim.run(random.int(500, 15_000));
    oneFault(sim);
  }
  sim.loss = 0;
  sim.cutRouter(false);
  for (const node of sim.nodes.keys()) sim.dispatch({ kind: "uncordon", node, by: "test" });
  for (const model of sim.world.catalog.catalog.models) {
    sim.dispatch({ kind: "resume", model: model.name, by: "test" });
    sim.dispatch({ kind: "clear_scale", model: model.name, by: "test" });
  }
}

function oneFault(sim: Simulation): void {
  const { random } = sim;
  const node = random.pick([...sim.nodes.keys()]);
  const by = "test";
  switch (random.int(0, 11)) {
    case 0:
      return sim.restartAgent(node);
    case 1:
      return sim.restartControl(random.chance(0.2));
    case 2:
      return sim.silence(node, random.int(1_000, 100_000));
    case 3:
    case 4:
      return crashOne(sim, node);
    case 5:
      return sim.dispatch({
        kind: random.pick(["cordon", "drain"] as const),
        node,
        by,
        reason: "",
      });
    case 6:
      return sim.dispatch({ kind: "uncordon", node, by });
    case 7:
      return editCatalog(sim);
    case 8:
      return sim.cutRouter(!sim.router.cutOff);
    case 9:
      return sim.restartMachine(node);
    case 10:
      return decideModel(sim);
    case 11:
      return sim.dispatch({ kind: "tick" });
  }
}

function crashOne(sim: Simulation, node: string): void {
  const shards = sim.nodes.get(node)?.running() ?? [];
  if (shards.length === 0) return;
  const { spec } = sim.random.pick(shards);
  sim.say(`${spec.shardId} crashes`);
  sim.nodes.get(node)?.crash(spec.shardId, "exited", sim.now);
}

function editCatalog(sim: Simulation): void {
  sim.say("catalog is edited");
  const { models } = sim.world.catalog.catalog;
  const fresh = randomCatalog(sim.random, Math.max(1, models.length));
  // Half of the models stay as they are, so that edits are edits.
  sim.apply({
    models: fresh.models.map((model, index) =>
      sim.random.chance(0.5) ? models[index] ?? model : model
    ),
  });
}

function decideModel(sim: Simulation): void {
  const { random } = sim;
  const { name: model } = random.pick(sim.world.catalog.catalog.models);
  const by = "test";
  switch (random.int(0, 3)) {
    case 0:
      return sim.dispatch({ kind: "pause", model, by, reason: "" });
    case 1:
      return sim.dispatch({ kind: "resume", model, by });
    case 2:
      return sim.dispatch({ kind: "scale", model, by, reason: "", replicas: random.int(0, 3) });
    case 3:
      return sim.dispatch({ kind: "clear_scale", model, by });
  }
}

/** Longest time from the last fault to quiet: everything silent returns, then starts, then drains. */
export const QUIET_MS = 2 * DEFAULT_TIMINGS.lostMs + 400_000;

/** What is wrong in the end, from the nodes' processes and the catalog; empty when all is well. */
export function unsettledBusiness(sim: Simulation): readonly string[] {
  const wrong: string[] = [];
  const running = [...sim.nodes.values()].flatMap((node) =>
    node.running().map((shard) => ({ node: node.name, shard }))
  );
  const byReplica = Map.groupBy(running, ({ shard }) => shard.spec.replicaId);
  const wholeOf = new Map<string, number>();
  for (const [id, shards] of byReplica) {
    const spec = shards[0]?.shard.spec;
    if (spec === undefined) continue;
    if (shards.length !== spec.shardCount) {
      wrong.push(`${id} runs ${shards.length}/${spec.shardCount}`);
    }
    if (!shards.every(({ shard }) => shard.state === "ready")) wrong.push(`${id} is not ready`);
    if (!sim.world.replicas.has(id)) wrong.push(`${id} runs and control does not know it`);
    wholeOf.set(spec.model, (wholeOf.get(spec.model) ?? 0) + 1);
  }
  for (const model of sim.world.catalog.catalog.models) {
    const have = wholeOf.get(model.name) ?? 0;
    wholeOf.delete(model.name);
    if (have > model.scaling.min) wrong.push(`${model.name} has ${have} of ${model.scaling.min}`);
    if (have < model.scaling.min && roomFor(sim, model.name)) {
      wrong.push(`${model.name} has ${have} of ${model.scaling.min} though there is room`);
    }
  }
  for (const [model, count] of wholeOf) wrong.push(`${model} is in no catalog and runs ${count}`);
  for (const id of sim.world.replicas.keys()) {
    if (!byReplica.has(id)) wrong.push(`control believes in ${id}, and nothing of it runs`);
  }
  const endpoints = sim.router.endpoints().join();
  const served = [...byReplica.keys()].sort().join();
  if (endpoints !== served) wrong.push(`the router has ${endpoints}, and ${served} run`);
  return wrong;
}

/** Brute force: some set of nodes of one fabric and class has the GPUs and ports free. */
function roomFor(sim: Simulation, name: string): boolean {
  const model = sim.world.catalog.catalog.models.find((each) => each.name === name);
  return (model?.profiles ?? []).some((profile) => {
    const nodes = [...sim.nodes.values()].filter((node) => {
      const running = node.running();
      const held = running.reduce((sum, { spec }) => sum + spec.gpus.length, 0);
      return node.shape.gpuClass === profile.gpu_class &&
        (node.shape.gpus ?? 0) - held >= profile.gpus_per_node &&
        running.length < (node.shape.portBlocks ?? 0);
    });
    if (profile.nodes === 1) return nodes.length > 0;
    const islands = Map.groupBy(
      nodes.filter((node) => node.shape.fabric !== undefined),
      (node) => `${node.shape.fabric} ${node.shape.hcas}`,
    );
    return [...islands.values()].some((island) => island.length >= profile.nodes);
  });
}
