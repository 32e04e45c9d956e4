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
import { type StoreRecord, storeRecords } from "../store_record.ts";
import { DEFAULT_TIMINGS, type Timings } from "../timings.ts";
import {
  type CatalogState,
  NO_DECISIONS,
  type Remembered,
  startWorld,
  type World,
} from "../world.ts";
import { T0 } from "./builders.ts";
import type { FakeNode } from "./fake_node.ts";
import { FakeRouter } from "./fake_router.ts";
import { type Random, randomOf } from "./random.ts";

/** Short where nothing depends on the length, so that a run is a few thousand steps. */
export const SIM_TIMINGS: Timings = {
  ...DEFAULT_TIMINGS,
  drainGraceMs: 60_000,
  stopTimeoutMs: 10_000,
  scaleDownWindowMs: 20_000,
  backoff: { firstMs: 2_000, maxMs: 20_000 },
};

export const STEP_MS = 250;

/** Something on its way, in the order of `at`. */
interface Parcel {
  readonly at: EpochMs;
  deliver(): void;
}

export interface SimOptions {
  readonly seed: number;
  readonly nodes: readonly FakeNode[];
  readonly catalog: Catalog;
  readonly timings?: Timings;
  /** Control waits for all nodes before it places, as after a restart. @default false */
  readonly known?: boolean;
}

/** One link between control and a node. */
interface Link {
  /** Number of its newest stream; 0 while none is open. */
  stream: number;
  /** Nothing passes until then, and nobody notices. */
  silentUntil: EpochMs;
  /** When the agent dials again. */
  dialAt: EpochMs | undefined;
  nextBeatAt: EpochMs;
  /** Order within a stream is kept. */
  upAt: EpochMs;
  downAt: EpochMs;
}

export class Simulation {
  readonly random: Random;
  readonly nodes: ReadonlyMap<NodeId, FakeNode>;
  readonly router = new FakeRouter("router/1");
  readonly violations: string[] = [];
  readonly trace: string[] = [];
  now: EpochMs = T0;
  world: World;
  lastPlan: Plan | undefined;
  /** Share of commands that are lost on the way. */
  loss = 0;
  /** Looks at every pass, before its plan is recorded. */
  onPass: (world: World, plan: Plan, now: EpochMs) => void = () => {};
  #store: Remembered;
  #links = new Map<NodeId, Link>();
  #parcels: Parcel[] = [];
  #streams = 0;
  #wakeAt: EpochMs = T0;
  #reportAt: EpochMs = T0;

  constructor(options: SimOptions) {
    this.random = randomOf(options.seed);
    this.nodes = new Map(options.nodes.map((node) => [node.name, node]));
    this.#store = {
      cluster: "sim",
      storedTerm: 0,
      catalog: { catalog: options.catalog, text: "", revision: 1 },
      knownNodes: new Set(options.known === true ? options.nodes.map((each) => each.name) : []),
      decisions: NO_DECISIONS,
      timings: options.timings ?? SIM_TIMINGS,
    };
    this.world = startWorld(this.#store, this.now);
    this.#store = { ...this.#store, storedTerm: this.world.term };
    for (const node of options.nodes) this.#links.set(node.name, this.#closedLink(0));
  }

  run(ms: number): void {
    for (const end = this.now + ms; this.now < end;) this.step();
  }

  step(): void {
    this.now += STEP_MS;
    for (const node of this.nodes.values()) this.#stepNode(node);
    const due = this.#parcels.filter((parcel) => parcel.at <= this.now)
      .sort((a, b) => a.at - b.at);
    this.#parcels = this.#parcels.filter((parcel) => parcel.at > this.now);
    for (const parcel of due) parcel.deliver();
    this.#stepRouter();
    if (this.now >= this.#wakeAt) this.pass();
    this.#checkNodes();
  }

  /** One pass of the loop, as loop.ts makes it. */
  pass(): void {
    const plan = reconcile(this.world, this.now);
    this.onPass(this.world, plan, this.now);
    for (const { rule, detail } of checkPlan(this.world, plan, this.now)) {
      this.violations.push(`${this.at()} plan breaks ${rule}: ${detail}`);
    }
    this.world = record(this.world, plan, this.now);
    const before = this.world.published;
    this.world = publish(this.world, this.now);
    if (this.world.published !== before) this.#sendPublication();
    for (const action of plan.actions) {
      this.trace.push(`${this.at()} ${JSON.stringify(action, shortened)}`);
      if (isCommand(action)) this.#sendDown(action.node, (node) => node.command(action, this.now));
    }
    this.lastPlan = plan;
    this.#wakeAt = plan.wakeAt ?? Infinity;
  }

  /** An event at control. */
  dispatch(event: Event): void {
    const next = observe(this.world, event, this.now);
    const records = storeRecords(this.world, next, event, this.now);
    this.world = next;
    this.#persist(records);
    this.#wakeAt = Math.min(this.#wakeAt, this.now);
  }

  apply(catalog: Catalog): void {
    const state: CatalogState = {
      catalog,
      text: "",
      revision: this.world.catalog.revision + 1,
    };
    this.dispatch({ kind: "catalog_applied", catalog: state });
  }

  /** Control dies and comes back with what it stored; `storeLoss` restores a backup without terms. */
  restartControl(storeLoss = false): void {
    this.say("control restarts");
    if (storeLoss) this.#store = { ...this.#store, storedTerm: 0 };
    this.world = startWorld(this.#store, this.now);
    this.#store = { ...this.#store, storedTerm: this.world.term };
    this.#parcels = [];
    for (const name of this.nodes.keys()) this.#cut(name, this.random.int(0, 20_000));
    this.#wakeAt = this.now;
    this.#sendPublication();
  }

  restartAgent(name: NodeId): void {
    this.say(`agent ${name} restarts`);
    this.nodes.get(name)?.restartAgent();
    this.#cut(name, this.random.int(500, 8_000));
    this.dispatch({ kind: "stream_closed", node: name });
  }

  restartMachine(name: NodeId): void {
    this.say(`machine ${name} restarts`);
    this.nodes.get(name)?.restartMachine();
    this.#cut(name, this.random.int(5_000, 90_000));
    this.dispatch({ kind: "stream_closed", node: name });
  }

  /** Nothing passes for a while; control may or may not see the stream break. */
  silence(name: NodeId, ms: number): void {
    this.say(`${name} is silent for ${ms}`);
    const link = this.#linkOf(name);
    link.silentUntil = this.now + ms;
    const noticed = this.random.chance(0.5);
    this.#cut(name, ms + this.random.int(0, 3_000));
    if (noticed) this.dispatch({ kind: "stream_closed", node: name });
  }

  /** While cut off, a router neither hears nor is heard; when it is back, it gets a snapshot. */
  cutRouter(off: boolean): void {
    this.say(`router is ${off ? "cut off" : "back"}`);
    this.router.cutOff = off;
    if (!off) this.#sendPublication();
  }

  say(what: string): void {
    this.trace.push(`${this.at()} ${what}`);
  }

  at(): string {
    return `t+${((this.now - T0) / 1_000).toFixed(2)}`;
  }

  #stepNode(node: FakeNode): void {
    node.advance(this.now);
    const link = this.#linkOf(node.name);
    if (this.now < link.silentUntil) return;
    if (link.stream === 0) {
      if (link.dialAt === undefined || link.dialAt > this.now) return;
      link.stream = ++this.#streams;
      link.dialAt = undefined;
      link.upAt = this.now;
      link.downAt = this.now;
      link.nextBeatAt = this.now + 5_000;
      this.#sendUp(node.name, link, node.register());
      return;
    }
    for (const event of node.take()) this.#sendUp(node.name, link, event);
    if (this.now >= link.nextBeatAt) {
      link.nextBeatAt = this.now + 5_000;
      this.#sendUp(node.name, link, node.heartbeat((replica) => this.router.inFlight(replica)));
    }
  }

  #sendUp(name: NodeId, link: Link, event: Event): void {
    const { stream } = link;
    link.upAt = Math.max(link.upAt, this.now + this.random.int(0, 400));
    this.#parcels.push({
      at: link.upAt,
      // What an older stream still carries is dropped at the door.
      deliver: () => {
        if (this.#linkOf(name).stream === stream) this.dispatch(event);
      },
    });
  }

  #sendDown(name: NodeId, deliver: (node: FakeNode) => void): void {
    const link = this.#linkOf(name);
    const node = this.nodes.get(name);
    if (link.stream === 0 || node === undefined || this.random.chance(this.loss)) return;
    const { stream } = link;
    link.downAt = Math.max(link.downAt, this.now + this.random.int(0, 400));
    const twice = this.random.chance(this.loss / 2);
    this.#parcels.push({
      at: link.downAt,
      deliver: () => {
        if (link.stream !== stream || this.now < link.silentUntil) return;
        deliver(node);
        if (twice) deliver(node);
      },
    });
  }

  #stepRouter(): void {
    this.router.step(this.now, this.random);
    if (this.now < this.#reportAt || this.router.cutOff) return;
    this.#reportAt = this.now + 2_000;
    this.dispatch(this.router.report());
  }

  #sendPublication(): void {
    const { published } = this.world;
    this.#parcels.push({
      at: this.now + this.random.int(0, 1_500),
      deliver: () => this.router.apply(published),
    });
  }

  #cut(name: NodeId, dialInMs: number): void {
    this.#links.set(name, {
      ...this.#closedLink(dialInMs),
      silentUntil: this.#linkOf(name).silentUntil,
    });
  }

  #closedLink(dialInMs: number): Link {
    const dialAt = this.now + dialInMs;
    return { stream: 0, silentUntil: 0, dialAt, nextBeatAt: 0, upAt: 0, downAt: 0 };
  }

  #linkOf(name: NodeId): Link {
    const link = this.#links.get(name);
    if (link === undefined) throw new Error(`there is no node ${name}`);
    return link;
  }

  #persist(records: readonly StoreRecord[]): void {
    for (const each of records) {
      if (each.kind === "term") this.#store = { ...this.#store, storedTerm: each.term };
    }
    const { knownNodes, decisions, catalog } = this.world;
    this.#store = { ...this.#store, knownNodes, decisions, catalog };
  }

  #checkNodes(): void {
    for (const node of this.nodes.values()) {
      for (const fault of node.faults.splice(0)) this.violations.push(`${this.at()} ${fault}`);
      const used = new Set<string>();
      for (const { spec } of node.running()) {
        for (const { uuid } of spec.gpus) {
          if (used.has(uuid)) this.violations.push(`${this.at()} ${uuid} is used twice`);
          used.add(uuid);
        }
        if (spec.shardCount > 1 && spec.fabric !== node.shape.fabric) {
          this.violations.push(
            `${this.at()} ${spec.shardId} on ${node.name} is told ${spec.fabric}`,
          );
        }
      }
    }
    this.#checkReplicas();
    for (const cut of this.router.takeCut(this.nodes)) this.violations.push(`${this.at()} ${cut}`);
  }

  /** Ranks of one replica are of one fabric and one class, whatever control believes. */
  #checkReplicas(): void {
    const seen = new Map<string, string>();
    for (const node of this.nodes.values()) {
      for (const { spec } of node.running()) {
        const island = spec.shardCount > 1 ? `${spec.fabric} ${node.shape.gpuClass}` : "";
        const before = seen.get(spec.replicaId);
        if (before !== undefined && before !== island) {
          this.violations.push(`${this.at()} ${spec.replicaId} spans ${before} and ${island}`);
        }
        seen.set(spec.replicaId, island);
      }
    }
  }
}

function shortened(key: string, value: unknown): unknown {
  if (key === "spec" || key === "logTail") return undefined;
  return typeof value === "bigint" ? Number(value) : value;
}
