/**
 * Control's own core with a fleet of simulated nodes and one router, on a clock that costs no time.
 * What decides is the product's: `observe`, `reconcile`, `record`, `publish`, with the timings that
 * are its defaults. Nodes are those of `deno task simulate`; engines are replica.ts.
 */
import type { Catalog } from "../../control/core/catalog.ts";
import { checkPlan } from "../../control/core/check_plan.ts";
import { record } from "../../control/core/deciding/record.ts";
import type { Event } from "../../control/core/event.ts";
import { matters } from "../../control/core/observing/matters.ts";
import { observe } from "../../control/core/observing/observe.ts";
import { publish } from "../../control/core/publish.ts";
import { reconcile } from "../../control/core/reconcile.ts";
import { FakeNode } from "../../control/core/testing/fake_node.ts";
import { DEFAULT_TIMINGS } from "../../control/core/timings.ts";
import { NO_DECISIONS, startWorld, type World } from "../../control/core/world.ts";
import { type Done, type Going, ReplicaLoad, SEQUENCES_MAX } from "./replica.ts";

export const MODEL = "chat-8b";

const NODES = 4;
const GPUS = 4;
/** As many replicas as there can be. */
export const GPUS_MAX = NODES * GPUS;
/** From the command to the first token: an 8B model from a local disk. */
const LOAD_MS = 90_000;
const STOP_MS = 5_000;
const REPORT_MS = 2_000;
/** How long a request waits at the router for room before it is refused. */
const WAIT_MS = 30_000;

/** What became of requests since the last look. */
export interface Counted {
  served: number;
  /** Served, and later than promised. */
  late: number;
  refused: number;
}

export interface Slo {
  readonly ttftMs: number;
  readonly tpotMs: number;
}

export class DayFleet {
  readonly #nodes = new Map<string, FakeNode>();
  readonly #loads = new Map<string, ReplicaLoad>();
  readonly #waiting: Going[] = [];
  readonly #slo: Slo;
  #world: World;
  #wakeAt = 0;
  #reportAt = 0;
  #beatAt = 0;
  /** Since the last report. */
  #said = { requests: 0, failures: 0, sloMisses: 0 };
  #counted: Counted = { served: 0, late: 0, refused: 0 };
  now: number;

  constructor(catalog: Catalog, slo: Slo, now: number) {
    this.now = now;
    this.#slo = slo;
    for (let index = 1; index <= NODES; index++) {
      const name = `n${index}`;
      const shape = { gpus: GPUS };
      this.#nodes.set(name, new FakeNode({ name, shape, loadMs: LOAD_MS, stopMs: STOP_MS }));
    }
    this.#world = startWorld({
      cluster: "day",
      storedTerm: 0,
      salt: "d",
      catalog: { catalog, text: "", revision: 1 },
      knownNodes: new Set(this.#nodes.keys()),
      decisions: NO_DECISIONS,
      timings: DEFAULT_TIMINGS,
    }, now);
    for (const node of this.#nodes.values()) this.#dispatch(node.register(now));
  }

  /** Replicas that take requests. */
  get ready(): number {
    return this.#world.published.endpoints.size;
  }

  /** GPUs that an engine holds, whether it serves yet or not. */
  get gpus(): number {
    let sum = 0;
    for (const node of this.#nodes.values()) {
      for (const { spec } of node.running()) sum += spec.gpus.length;
    }
    return sum;
  }

  /** What became of requests since it was last asked. */
  take(): Counted {
    const counted = this.#counted;
    this.#counted = { served: 0, late: 0, refused: 0 };
    return counted;
  }

  step(ms: number, arrived: readonly Omit<Going, "arrivedAt">[]): void {
    this.now += ms;
    for (const request of arrived) this.#waiting.push({ ...request, arrivedAt: this.now - ms });
    this.#send();
    for (const load of this.#loads.values()) this.#count(load.advance(ms, this.now));
    this.#stepNodes();
    if (this.now >= this.#reportAt) this.#report();
    if (this.now >= this.#wakeAt) this.#pass();
  }

  /** To the replica with least, as long as one has room; refused after the wait. */
  #send(): void {
    const open = [...this.#world.published.endpoints].filter(([, { draining }]) => !draining)
      .map(([id]) => this.#loadOf(id));
    while (this.#waiting.length > 0) {
      const least = open.reduce<ReplicaLoad | undefined>(
        (best, load) => best === undefined || load.inFlight < best.inFlight ? load : best,
        undefined,
      );
      if (least === undefined || least.inFlight >= SEQUENCES_MAX) break;
      const next = this.#waiting.shift();
      if (next !== undefined) least.take(next);
    }
    while ((this.#waiting[0]?.arrivedAt ?? this.now) < this.now - WAIT_MS) {
      this.#waiting.shift();
      this.#counted.refused++;
      this.#said.requests++;
      this.#said.failures++;
    }
  }

  #loadOf(id: string): ReplicaLoad {
    const found = this.#loads.get(id) ?? new ReplicaLoad();
    this.#loads.set(id, found);
    return found;
  }

  #count(done: readonly Done[]): void {
    for (const { ttftMs, tpotMs } of done) {
      const late = ttftMs > this.#slo.ttftMs || tpotMs > this.#slo.tpotMs;
      this.#counted.served++;
      this.#said.requests++;
      if (!late) continue;
      this.#counted.late++;
      this.#said.sloMisses++;
    }
  }

  #stepNodes(): void {
    const beats = this.now >= this.#beatAt;
    if (beats) this.#beatAt = this.now + this.#world.timings.heartbeatMs;
    for (const node of this.#nodes.values()) {
      if (node.nextDue() <= this.now) node.advance(this.now);
      for (const event of node.take()) this.#dispatch(event);
      if (!beats) continue;
      this.#dispatch(
        node.heartbeat((replica) => this.#loads.get(replica)?.inFlight ?? 0, this.now),
      );
    }
  }

  #report(): void {
    this.#reportAt = this.now + REPORT_MS;
    this.#dispatch({
      kind: "router_report",
      router: "router/1",
      version: "0.1.0",
      instance: "1",
      applied: this.#world.published.revision,
      replicas: new Map(
        [...this.#loads].map(([id, { inFlight }]) => [id, { inFlight, reservedTokens: 0 }]),
      ),
      models: new Map([[MODEL, { ...this.#said, waiting: this.#waiting.length }]]),
    });
    this.#said = { requests: 0, failures: 0, sloMisses: 0 };
  }

  #dispatch(event: Event): void {
    if (matters(this.#world, event, this.now)) this.#wakeAt = Math.min(this.#wakeAt, this.now);
    this.#world = observe(this.#world, event, this.now);
  }

  #pass(): void {
    const plan = reconcile(this.#world, this.now);
    const broken = checkPlan(this.#world, plan, this.now);
    if (broken.length > 0) throw new Error(`A plan breaks ${broken[0]?.rule}`);
    this.#world = publish(record(this.#world, plan, this.now), this.now);
    this.#wakeAt = plan.wakeAt ?? Infinity;
    for (const action of plan.actions) {
      if (action.kind !== "start_shard" && action.kind !== "stop_shard") continue;
      this.#nodes.get(action.node)?.command(action, this.now);
    }
    for (const id of this.#loads.keys()) {
      if (!this.#world.replicas.has(id)) this.#loads.delete(id);
    }
  }
}
