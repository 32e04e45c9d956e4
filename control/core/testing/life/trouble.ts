/** Random faults for a while; then everything is mended and left alone. */
import { reach } from "../../facts/node_state.ts";
import type { Catalog } from "../../catalog.ts";
import type { Flaw } from "./curses.ts";
import { LABELS, randomCatalog, randomLabels, type Scenario } from "./scenario.ts";
import type { Simulation } from "../simulation.ts";
import { GIB } from "../weights/fake_disk.ts";

const BY = "test";

type Fault = (scenario: Scenario, node: string) => void;

/** Through all of these, what runs well runs on. */
const GENTLE: readonly Fault[] = [
  ({ sim }, node) => sim.restartAgent(node),
  ({ sim }) => sim.restartControl(sim.random.chance(0.3)),
  ({ sim }) => {
    sim.diesAfter = sim.random.int(0, 3);
  },
  ({ sim }, node) => {
    if (sim.inReach(node)) sim.silence(node, sim.random.int(1_000, 30_000));
  },
  ({ sim }, node) => {
    if (sim.inReach(node)) sim.cutStream(node);
  },
  ({ sim }) => cutOrMend(sim),
  ({ sim }) => restartRouter(sim),
  ({ sim }, node) => sim.dispatch({ kind: "cordon", node, by: BY, reason: "" }),
  ({ sim }, node) => sim.dispatch({ kind: "uncordon", node, by: BY }),
  ({ sim }, node) => relabel(sim, node),
  ({ sim }, node) => breakGpu(sim, node),
  ({ sim }, node) => doubtOne(sim, node),
  ({ sim }) => reweigh(sim),
  ({ sim }, node) => fillDisk(sim, node),
  ({ sim }, node) => fillDisk(sim, node),
  ({ sim }, node) => removeSome(sim, node),
  ({ sim }) => sim.dispatch({ kind: "tick" }),
];

const ROUGH: readonly Fault[] = [
  ...GENTLE,
  ({ sim }) => sim.backUp(),
  ({ sim }) => {
    if (sim.random.chance(0.3)) sim.loseStore();
  },
  ({ sim }) => {
    if (sim.random.chance(0.3)) sim.restoreBackup();
  },
  ({ sim }, node) => sim.silence(node, sim.random.int(30_000, 100_000)),
  ({ sim }, node) => crashOne(sim, node),
  ({ sim }, node) => crashOne(sim, node),
  ({ sim }, node) => sim.restartMachine(node),
  ({ sim }, node) => sim.dispatch({ kind: "drain", node, by: BY, reason: "" }),
  (scenario) => editCatalog(scenario),
  (scenario) => takeOverWithOlderFile(scenario),
  ({ sim }) => decideModel(sim),
  ({ sim }) => decideReplica(sim),
  ({ sim }) => wakeOne(sim),
  ({ sim }, node) => forgetLost(sim, node),
  (scenario) => curse(scenario),
  (scenario, node) => failForGood(scenario, node),
  (scenario, node) => failForGood(scenario, node),
  ({ sim }, node) => changeEngine(sim, node),
];

/** A fault every few seconds for `ms`, then all of them are mended. */
export function trouble(scenario: Scenario, ms: number): void {
  const { sim, gentle } = scenario;
  const { random } = sim;
  const nodes = [...sim.nodes.keys()];
  sim.wires.loss = random.pick([0, 0.05, 0.3]);
  sim.wires.late = random.pick([0, 0, 0.05]);
  for (const end = sim.now + ms; sim.now < end;) {
    sim.run(random.int(500, 15_000));
    random.pick(gentle ? GENTLE : ROUGH)(scenario, random.pick(nodes));
    sim.ledger.quietSince = sim.now;
  }
  mend(scenario);
}

function mend({ sim, curses }: Scenario): void {
  sim.say("everything is mended");
  sim.wires.loss = 0;
  sim.wires.late = 0;
  sim.diesAfter = undefined;
  curses.crash.clear();
  curses.slow.clear();
  // Half of what fails for good is mended where nobody sees it, and stays as it is.
  if (sim.random.chance(0.5)) curses.flaws.clear();
  for (const node of sim.nodes.values()) {
    for (const shard of node.shards.values()) {
      if (shard.state === "degraded") node.doubt(shard.spec.shardId, false, sim.now);
    }
  }
  for (const router of sim.routers) sim.cutRouter(false, router);
  for (const node of sim.nodes.keys()) sim.dispatch({ kind: "uncordon", node, by: BY });
  // A decision about a model outlives its place in the catalog.
  const { paused, scales } = sim.world.decisions;
  for (const model of paused.keys()) sim.dispatch({ kind: "resume", model, by: BY });
  for (const model of scales.keys()) sim.dispatch({ kind: "clear_scale", model, by: BY });
  sim.ledger.quietSince = sim.now;
}

function cutOrMend(sim: Simulation): void {
  const router = sim.random.pick(sim.routers);
  sim.cutRouter(!router.cutOff, router);
}

function restartRouter(sim: Simulation): void {
  const router = sim.random.pick(sim.routers);
  sim.say(`${router.name} restarts`);
  router.restart();
  if (!router.cutOff && sim.random.chance(0.5)) {
    sim.dispatch({ kind: "router_gone", router: router.name });
  }
}

/** An operator puts labels on a node and takes some off. Nothing that runs is touched by it. */
export function relabel(sim: Simulation, node: string): void {
  const set = randomLabels(sim.random, 0.5);
  const remove = Object.keys(LABELS).filter((key) => !(key in set) && sim.random.chance(0.5));
  sim.say(`${node} is labelled ${JSON.stringify(set)}, and no more with ${remove.join()}`);
  sim.dispatch({ kind: "label", node, set, remove, by: BY });
}

function breakGpu(sim: Simulation, name: string): void {
  const node = sim.nodes.get(name);
  if (node === undefined) return;
  if (node.badGpus.size > 0 && sim.random.chance(0.7)) node.badGpus.clear();
  else node.badGpus.add(sim.random.int(0, (node.shape.gpus ?? 1) - 1));
  sim.say(`${name} has ${node.badGpus.size} broken GPUs`);
}

function crashOne(sim: Simulation, node: string): void {
  const shards = sim.nodes.get(node)?.running() ?? [];
  if (shards.length === 0) return;
  const { spec } = sim.random.pick(shards);
  sim.say(`${spec.shardId} crashes`);
  sim.ledger.excuseModel(spec.model);
  sim.nodes.get(node)?.crash(spec.shardId, "exited", sim.now);
}

/** An agent doubts an engine that serves, or takes its doubt back. */
function doubtOne(sim: Simulation, name: string): void {
  const node = sim.nodes.get(name);
  const served = [...node?.shards.values() ?? []].filter(({ state }) =>
    state === "ready" || state === "degraded"
  );
  if (node === undefined || served.length === 0) return;
  const { spec, state } = sim.random.pick(served);
  sim.say(`${spec.shardId} is ${state === "ready" ? "doubted" : "trusted again"}`);
  node.doubt(spec.shardId, state === "ready", sim.now);
}

/** A client asks for a model that may sleep. */
function wakeOne(sim: Simulation): void {
  const { name: model } = sim.random.pick(sim.world.catalog.catalog.models);
  sim.say(`${model} is asked for`);
  sim.dispatch({ kind: "wake", model });
}

/** Half of the models stay as they are, so that edits are edits. */
function edited({ sim, gentle, fetched }: Scenario): Catalog {
  const { models } = sim.world.catalog.catalog;
  const classes = models[0]?.profiles.map((each) => each.gpu_class ?? "") ?? [];
  const count = Math.max(1, models.length + sim.random.int(-1, 1));
  const fresh = randomCatalog(sim.random, count, { classes, gentle, fetched });
  return {
    models: fresh.models.map((model, index) =>
      sim.random.chance(0.5) ? models[index] ?? model : model
    ),
  };
}

function editCatalog(scenario: Scenario): void {
  scenario.sim.say("the catalog is edited");
  scenario.sim.apply(edited(scenario));
}

/** What no engine has to be touched for. */
function reweigh(sim: Simulation): void {
  sim.say("weights, priorities and selectors are edited");
  sim.apply({
    models: sim.world.catalog.catalog.models.map((model) => ({
      ...model,
      aliases: sim.random.chance(0.5) ? [`${model.name}-alias`] : [],
      profiles: model.profiles.map((profile) => ({
        ...profile,
        weight: sim.random.int(1, 5),
        priority: sim.random.int(0, 2),
        node_selector: randomLabels(sim.random, 0.12),
      })),
    })),
  });
}

function takeOverWithOlderFile(scenario: Scenario): void {
  const { sim } = scenario;
  const older = sim.world.catalog.catalog;
  sim.apply(edited(scenario));
  sim.run(sim.random.int(0, 10_000));
  sim.say("another control takes over with an older catalog file");
  sim.restartControl();
  sim.offer(older);
}

function decideModel(sim: Simulation): void {
  const { random } = sim;
  const { name: model } = random.pick(sim.world.catalog.catalog.models);
  switch (random.int(0, 4)) {
    case 0:
      return sim.dispatch({ kind: "pause", model, by: BY, reason: "" });
    case 1:
      return sim.dispatch({ kind: "resume", model, by: BY });
    case 2:
      return sim.dispatch({ kind: "scale", model, by: BY, reason: "", replicas: random.int(0, 3) });
    case 3:
      return sim.dispatch({ kind: "clear_scale", model, by: BY });
    case 4:
      return sim.dispatch({ kind: "retry", model, by: BY });
  }
}

function decideReplica(sim: Simulation): void {
  const { random } = sim;
  const replicas = [...sim.world.replicas.keys()];
  if (replicas.length === 0) return;
  const kind = random.pick(["restart", "stop", "stop_at_once"] as const);
  const replica = random.pick(replicas);
  sim.say(`an operator wants ${kind} of ${replica}`);
  sim.dispatch({ kind, replica, by: BY, reason: "" });
}

/** It was lost, an operator gives it up, and it comes back all the same. */
function forgetLost(sim: Simulation, node: string): void {
  sim.silence(node, sim.random.int(70_000, 120_000));
  sim.run(65_000);
  if (sim.world.nodes.get(node)?.connected === true) {
    sim.dispatch({ kind: "stream_closed", node });
  }
  // Control may have begun anew meanwhile, and then does not know yet: it would refuse.
  if (reach(sim.world, node, sim.now) !== "lost") return;
  sim.say(`an operator forgets ${node}`);
  sim.dispatch({ kind: "forget_node", node, by: BY });
}

function curse({ sim, curses }: Scenario): void {
  const { name: model } = sim.random.pick(sim.world.catalog.catalog.models);
  const kind = sim.random.pick(["crash", "slow"] as const);
  sim.say(`${model} does not start any more: ${kind}`);
  sim.ledger.excuseModel(model);
  curses[kind].add(model);
}

/** An engine that fails for good: a profile's, or all of a model's on one node. */
function failForGood({ sim, curses }: Scenario, node: string): void {
  const { random } = sim;
  const { name: model, profiles } = random.pick(sim.world.catalog.catalog.models);
  const { boot = 1, engineVersion = "" } = sim.nodes.get(node) ?? {};
  const flaw: Flaw = random.chance(0.5)
    ? {
      of: "profile",
      model,
      reason: random.pick(["quantization_unsupported_by_gpu", "context_too_long"]),
      args: random.pick(profiles).args.join(" "),
      engineVersion,
    }
    : { of: "node", model, reason: random.pick(["library_missing", "driver_too_old"]), node, boot };
  sim.say(`${model} fails for good ${flaw.of === "node" ? `on ${node}` : ""}: ${flaw.reason}`);
  curses.flaws.add(flaw);
  // Something has to be started to see it.
  const running = [...sim.world.replicas.values()].filter((replica) => replica.model === model);
  if (running.length === 0) return;
  const replica = random.pick(running).id;
  sim.dispatch({ kind: random.pick(["restart", "stop"]), replica, by: BY, reason: "" });
}

/** Something that is no weights fills a node's disk, or is gone again. */
function fillDisk(sim: Simulation, name: string): void {
  const disk = sim.nodes.get(name)?.disk;
  if (disk === undefined) return;
  disk.fillerBytes = disk.fillerBytes === 0 ? sim.random.int(10, 60) * GIB : 0;
  sim.say(`${name} has ${disk.freeBytes() / GIB} GiB free`);
}

/** An operator wants something removed: what a node fetched, or what somebody put there. */
function removeSome(sim: Simulation, name: string): void {
  const disk = sim.nodes.get(name)?.disk;
  if (disk === undefined) return;
  sim.askRemoval(name, sim.random.pick([...disk.whole(sim.now), ...disk.foreign]));
}

/** Another version of the engine is installed on a node. What runs goes on with the old one. */
function changeEngine(sim: Simulation, name: string): void {
  const node = sim.nodes.get(name);
  if (node === undefined) return;
  node.engineVersion = node.engineVersion === "0.28.1" ? "0.28.2" : "0.28.1";
  sim.say(`${name} has vllm ${node.engineVersion} now`);
}
