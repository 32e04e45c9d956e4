/**
 * The real core with simulated nodes and routers on a clock of its own. Faults come at random from a
 * seed, then stop; what must never be is looked for in the nodes' own processes at every step, and
 * what must be in the end is looked for once everything is quiet.
 */
import type { Catalog } from "../catalog.ts";
import { checkPlan } from "../check_plan.ts";
import type { Event } from "../event.ts";
import type { EpochMs, NodeId } from "../ids.ts";
import { observe } from "../observing/observe.ts";
import type { Plan } from "../plan.ts";
import { publish } from "../publish.ts";
import { isCommand, reconcile } from "../reconcile.ts";
import { record } from "../deciding/record.ts";
import { matters } from "../observing/matters.ts";
import { judgeCatalog } from "../catalog/judge_catalog.ts";
import { storeRecords } from "../store_record.ts";
import { DEFAULT_TIMINGS, type Timings } from "../timings.ts";
import { userOf } from "../weights/unused.ts";
import { type CatalogState, NO_DECISIONS, type World } from "../world.ts";
import { T0 } from "./builders.ts";
import type { FakeNode } from "./fake_node.ts";
import { FakeRouter } from "./fake_router.ts";
import { Invariants, type Violation } from "./invariants.ts";
import { Kept } from "./kept.ts";
import { Ledger } from "./ledger.ts";
import { type Random, randomOf } from "./random.ts";
import { WeightsKeeper } from "./weights/keeper.ts";
import { Wires } from "./wires.ts";

/** Short where nothing depends on the length, so that a run is a few thousand steps. */
export const SIM_TIMINGS: Timings = {
  ...DEFAULT_TIMINGS,
  drainGraceMs: 60_000,
  stopTimeoutMs: 10_000,
  scaleUpWindowMs: 10_000,
  scaleDownWindowMs: 20_000,
  idleMs: 30_000,
  backoff: { firstMs: 2_000, maxMs: 20_000 },
};

export const STEP_MS = 250;

export interface SimOptions {
  readonly seed: number;
  readonly nodes: readonly FakeNode[];
  readonly catalog: Catalog;
  readonly timings?: Timings;
  /** How many routers there are. @default 1 */
  readonly routers?: number;
  /** Control waits for all nodes before it places, as after a restart. @default false */
  readonly known?: boolean;
}

export class Simulation {
  readonly random: Random;
  readonly nodes: ReadonlyMap<NodeId, FakeNode>;
  readonly routers: readonly FakeRouter[];
  readonly ledger: Ledger;
  readonly wires: Wires;
  readonly violations: Violation[] = [];
  readonly trace: string[] = [];
  now: EpochMs = T0;
  world: World;
  lastPlan: Plan | undefined;
  /** Control dies after it has sent so many more commands. */
  diesAfter: number | undefined;
  /** Looks at every pass, before its plan is recorded. */
  onPass: (world: World, plan: Plan, now: EpochMs) => void = () => {};
  readonly #kept: Kept;
  #wakeAt: EpochMs = T0;
  #reportAt: EpochMs = T0;
  readonly #keeper = new WeightsKeeper();
  readonly #invariants: Invariants;

  constructor(options: SimOptions) {
    this.random = randomOf(options.seed);
    this.nodes = new Map(options.nodes.map((node) => [node.name, node]));
    const timings = options.timings ?? SIM_TIMINGS;
    this.wires = new Wires(this.random);
    this.#kept = new Kept({
      cluster: "sim",
      storedTerm: 0,
      catalog: { catalog: options.catalog, text: "", revision: 1 },
      knownNodes: new Set(options.known === true ? options.nodes.map((each) => each.name) : []),
      decisions: NO_DECISIONS,
      timings,
    });
    this.routers = Array.from(
      { length: options.routers ?? 1 },
      (_, index) => new FakeRouter(`router/${index + 1}`),
    );
    this.ledger = new Ledger(timings, options.nodes);
    this.#invariants = new Invariants(this.nodes, this.ledger, (invariant, detail) => {
      this.violate(invariant, detail);
    });
    this.world = this.#begin();
    for (const node of options.nodes) this.wires.cut(node.name, this.now);
  }

  /** The first of them, for tests that need one. */
  get router(): FakeRouter {
    const [first] = this.routers;
    if (first === undefined) throw new Error("every simulation has a router");
    return first;
  }

  run(ms: number): void {
    for (const end = this.now + ms; this.now < end;) this.step();
  }

  step(): void {
    this.now += STEP_MS;
    for (const node of this.nodes.values()) this.#stepNode(node);
    this.wires.deliver(this.now);
    this.#stepRouters();
    this.ledger.excuseSilent(this.now);
    if (this.now >= this.#wakeAt) this.pass();
    for (const { node, folder } of this.#keeper.look(this.world, this.now)) {
      this.say(`control has ${node} remove ${folder}`);
      this.#invariants.removed(node, folder, { asked: false });
      this.#removeWeights(node, folder);
    }
    this.#invariants.look(this.now);
    for (const router of this.routers) {
      for (const cut of router.takeCut(this.nodes)) this.violate("request_kept", cut);
    }
  }

  violate(invariant: Violation["invariant"], what: string): void {
    const detail = `${this.at()} ${what}`;
    this.violations.push({ invariant, detail });
    this.trace.push(`${detail} !! ${invariant}`);
  }

  /** One pass of the loop, as loop.ts makes it. */
  pass(): void {
    const plan = reconcile(this.world, this.now);
    this.onPass(this.world, plan, this.now);
    for (const { rule, detail } of checkPlan(this.world, plan, this.now)) {
      this.violate("plan_checked", `plan breaks ${rule}: ${detail}`);
    }
    this.world = record(this.world, plan, this.now);
    this.#kept.remember(this.world);
    const before = this.world.published;
    this.world = publish(this.world, this.now);
    this.lastPlan = plan;
    this.#wakeAt = plan.wakeAt ?? Infinity;
    if (this.world.published !== before) this.#sendPublication();
    for (const step of plan.steps) this.say(`${step.model} to ${step.count}: ${step.reason}`);
    for (const action of plan.actions) {
      this.#invariants.decided(action);
      this.trace.push(`${this.at()} ${JSON.stringify(action, shortened)}`);
      if (!isCommand(action)) continue;
      if (this.diesAfter !== undefined && --this.diesAfter < 0) return this.restartControl();
      this.#invariants.sent(action, this.now);
      this.wires.down(action.node, this.now, (at) => {
        const node = this.nodes.get(action.node);
        if (node === undefined) return;
        this.#invariants.arrives(node, action, at);
        node.command(action, at);
      });
    }
  }

  /** An event at control. */
  dispatch(event: Event): void {
    const due = matters(this.world, event, this.now);
    this.ledger.told(event, this.now);
    const next = observe(this.world, event, this.now);
    const records = storeRecords(this.world, next, event, this.now);
    this.world = next;
    this.#kept.persist(records, next);
    this.#kept.remember(next);
    if (due) this.#wakeAt = Math.min(this.#wakeAt, this.now);
  }

  apply(catalog: Catalog): void {
    this.ledger.edited(this.world.catalog.catalog, catalog);
    const state: CatalogState = {
      catalog,
      text: "",
      revision: this.world.catalog.revision + 1,
    };
    this.dispatch({ kind: "catalog_applied", catalog: state });
  }

  /** As control does it with a file of its own: what would stop too much waits for a person. */
  offer(catalog: Catalog): void {
    if (judgeCatalog(this.world, catalog, this.now).kind === "apply") this.apply(catalog);
  }

  /** Control dies and comes back, or another takes over, with what is stored. */
  restartControl(termLoss = false): void {
    this.say("control restarts");
    this.diesAfter = undefined;
    if (termLoss) this.#kept.loseTerm();
    this.wires.dropAll();
    this.world = this.#begin();
    for (const name of this.nodes.keys()) this.#cut(name, this.random.int(0, 20_000));
    this.#wakeAt = this.now;
    this.#sendPublication();
  }

  /** An operator asks for a folder's removal; control looks first who uses it. */
  askRemoval(node: NodeId, folder: string): void {
    const known = this.world.nodes.get(node)?.connected === true;
    if (!known || userOf(this.world, node, folder) !== undefined) return;
    this.say(`an operator has ${node} remove ${folder}`);
    this.#invariants.removed(node, folder, { asked: true });
    this.#removeWeights(node, folder);
  }

  /** Keeps a copy of the store, for `restoreBackup`. */
  backUp(): void {
    this.#kept.backUp();
    this.ledger.permanence.backUp();
  }

  /** Control comes back with a store in which nothing is but the catalog of its file. */
  loseStore(): void {
    this.say("the store is lost");
    this.ledger.excuseEverything();
    this.ledger.permanence.lost();
    this.#kept.lose();
    this.restartControl();
  }

  /** Control comes back with what it had stored when `backUp` was called last. */
  restoreBackup(): void {
    if (!this.#kept.restore()) return;
    this.say("a backup is restored");
    this.ledger.excuseEverything();
    this.ledger.permanence.restored();
    this.restartControl();
  }

  /** The node's stream breaks, and its agent dials again. */
  cutStream(name: NodeId): void {
    this.say(`the stream of ${name} is cut`);
    this.#cut(name, this.random.int(500, 3_000));
    this.dispatch({ kind: "stream_closed", node: name });
  }

  restartAgent(name: NodeId): void {
    this.say(`agent ${name} restarts`);
    this.nodes.get(name)?.restartAgent();
    this.#cut(name, this.random.int(500, 8_000));
    this.dispatch({ kind: "stream_closed", node: name });
  }

  restartMachine(name: NodeId): void {
    this.say(`machine ${name} restarts`);
    this.ledger.excuseNode(name);
    this.nodes.get(name)?.restartMachine(this.now);
    this.#cut(name, this.random.int(5_000, 90_000));
    this.dispatch({ kind: "stream_closed", node: name });
  }

  /** Nothing passes for a while; control may or may not see the stream break. */
  silence(name: NodeId, ms: number): void {
    this.say(`${name} is silent for ${ms}`);
    this.wires.silence(name, this.now + ms);
    const noticed = this.random.chance(0.5);
    this.#cut(name, ms + this.random.int(0, 3_000));
    if (noticed) this.dispatch({ kind: "stream_closed", node: name });
  }

  /** While cut off, a router neither hears nor is heard; when it is back, it gets a snapshot. */
  cutRouter(off: boolean, router = this.router): void {
    this.say(`${router.name} is ${off ? "cut off" : "back"}`);
    router.cutOff = off;
    if (!off) this.#sendPublication();
  }

  /** The stream to the node is open, or it may dial. */
  inReach(name: NodeId): boolean {
    return this.wires.open(name);
  }

  say(what: string): void {
    this.trace.push(`${this.at()} ${what}`);
  }

  at(): string {
    return `t+${((this.now - T0) / 1_000).toFixed(2)}`;
  }

  #begin(): World {
    this.#keeper.begin();
    const world = this.#kept.begin(this.now);
    this.ledger.began(this.now, this.#kept.remembered);
    return world;
  }

  #stepNode(node: FakeNode): void {
    if (node.nextDue() <= this.now) node.advance(this.now);
    const { name } = node;
    if (this.wires.silent(name, this.now)) return;
    if (!this.wires.open(name)) {
      if (this.wires.dialled(name, this.now)) this.#sendUp(name, node.register(this.now));
      return;
    }
    for (const event of node.take()) this.#sendUp(name, event);
    if (!this.wires.beats(name, this.now)) return;
    const inFlight = (replica: string) =>
      this.routers.reduce((sum, router) => sum + router.inFlight(replica), 0);
    this.#sendUp(name, node.heartbeat(inFlight, this.now));
  }

  #sendUp(name: NodeId, event: Event): void {
    this.wires.up(name, this.now, () => this.dispatch(event));
  }

  #stepRouters(): void {
    const reports = this.now >= this.#reportAt;
    if (reports) this.#reportAt = this.now + 2_000;
    for (const router of this.routers) {
      router.step(this.now, this.random);
      if (reports && !router.cutOff) this.dispatch(router.report());
    }
  }

  #sendPublication(): void {
    const { published } = this.world;
    for (const router of this.routers) {
      this.wires.post(this.now + this.random.int(0, 1_500), () => {
        router.apply(published);
        this.#invariants.listed(router.name, router.list());
      });
    }
  }

  #removeWeights(name: NodeId, folder: string): void {
    const node = this.nodes.get(name);
    this.wires.down(name, this.now, (at) => node?.removeWeights(folder, at));
  }

  #cut(name: NodeId, dialInMs: number): void {
    this.wires.cut(name, this.now + dialInMs);
  }
}

function shortened(key: string, value: unknown): unknown {
  if (key === "spec" || key === "logTail") return undefined;
  return typeof value === "bigint" ? Number(value) : value;
}
