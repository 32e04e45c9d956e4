/**
 * The endpoints with their present: the routing table in force and, beside it, what only this
 * router knows of each endpoint (requests in flight, breaker). A new table keeps the present of
 * every endpoint that it still has; one that left it lives on until its last request has ended.
 *
 * This is the one writer of both.
 */
import {
  after,
  type Breaker,
  type BreakerState,
  CLOSED,
  sent,
  settle,
  withdrawn,
} from "./core/fleet/breaker.ts";
import { type Endpoint, sameOrigin } from "./core/fleet/endpoint.ts";
import type { Judgement } from "./core/fleet/judgement.ts";
import type { Candidate } from "./core/schedule/candidate.ts";
import { type Pick, pick } from "./core/schedule/pick.ts";
import {
  apply,
  EMPTY_TABLE,
  overlay,
  type Table,
  type TableFold,
  type TableUpdate,
} from "./core/fleet/table.ts";

interface Live {
  endpoint: Endpoint;
  inFlight: number;
  /** What the other routers have there, as control last told. */
  othersInFlight: number;
  breaker: Breaker;
  busyUntil: number;
}

/** A request's place at an endpoint. Disposing it frees the place, once. */
export interface Slot extends Disposable {
  readonly endpoint: Endpoint;
  /** Tells what the try says of the endpoint; a slot without a judgement says nothing. */
  judge(judgement: Judgement): void;
}

export interface ReplicaPresent {
  readonly replicaId: string;
  readonly inFlight: number;
  readonly breaker: BreakerState;
}

export interface EndpointsOptions {
  /** Endpoints that no control manages. */
  readonly fixed: Table;
  /** Milliseconds, monotonic. */
  readonly now: () => number;
  /** In [0,1). */
  readonly random: () => number;
}

export class Endpoints {
  readonly #options: EndpointsOptions;
  readonly #live = new Map<string, Live>();
  readonly #waiters = new Set<() => void>();
  #fold: TableFold = { table: EMPTY_TABLE, pending: [] };
  #table: Table;
  #heard = false;

  constructor(options: EndpointsOptions) {
    this.#options = options;
    this.#table = overlay(EMPTY_TABLE, options.fixed);
    this.#reconcile();
  }

  /** False until there is anything to serve from: then no model can be said not to exist. */
  get informed(): boolean {
    return this.#table.models.size > 0 || this.#heard;
  }

  /** The table in force: control's with the fixed endpoints beside. */
  get table(): Table {
    return this.#table;
  }

  /** What control said, without the fixed endpoints: what belongs into the snapshot. */
  get watched(): Table {
    return this.#fold.table;
  }

  /** Applies one message of control and wakes whoever waits for a change. */
  apply(update: TableUpdate): void {
    const before = this.#fold.table;
    this.#fold = apply(this.#fold, update);
    if (this.#fold.table === before) return;
    this.#heard = true;
    this.#table = overlay(this.#fold.table, this.#options.fixed);
    this.#reconcile();
    for (const wake of [...this.#waiters]) wake();
  }

  /** Drops the chunks of a snapshot whose stream broke off. */
  forgetPending(): void {
    this.#fold = { table: this.#fold.table, pending: [] };
  }

  /** Resolves at the next change of the table, or when `signal` aborts. */
  changed(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal.aborted) return resolve();
      const done = () => {
        this.#waiters.delete(done);
        signal.removeEventListener("abort", done);
        resolve();
      };
      this.#waiters.add(done);
      signal.addEventListener("abort", done);
    });
  }

  /** Whether `model` has an endpoint that takes new requests, whatever its breaker says. */
  serves(model: string): boolean {
    return (this.#table.byModel.get(model) ?? []).some(({ draining }) => !draining);
  }

  /** Chooses an endpoint of `model` and takes a place there. */
  take(model: string, tried: ReadonlySet<string>): Slot | Extract<Pick, { kind: "none" }> {
    const now = this.#options.now();
    const candidates: Candidate[] = [];
    for (const endpoint of this.#table.byModel.get(model) ?? []) {
      const live = this.#live.get(endpoint.replicaId);
      if (live !== undefined) candidates.push(live);
    }
    const picked = pick({ candidates, wanted: { tried }, chance: this.#options.random(), now });
    return picked.kind === "none" ? picked : this.#slot(picked.endpoint);
  }

  /** Takes what the other routers have in flight; who is not named has nothing. */
  setOthers(others: readonly { readonly replicaId: string; readonly inFlight: number }[]): void {
    for (const live of this.#live.values()) live.othersInFlight = 0;
    for (const { replicaId, inFlight } of others) {
      const live = this.#live.get(replicaId);
      if (live !== undefined) live.othersInFlight += inFlight;
    }
  }

  /** Every replica as it is now, also one that has left the table and still has requests. */
  replicas(): readonly ReplicaPresent[] {
    const now = this.#options.now();
    return [...this.#live].map(([replicaId, { inFlight, breaker }]) => ({
      replicaId,
      inFlight,
      breaker: settle(breaker, now).kind,
    }));
  }

  #reconcile(): void {
    for (const [id, live] of this.#live) {
      if (!this.#table.endpoints.has(id) && live.inFlight === 0) this.#live.delete(id);
    }
    for (const [id, endpoint] of this.#table.endpoints) {
      const live = this.#live.get(id);
      if (live === undefined) {
        this.#live.set(id, {
          endpoint,
          inFlight: 0,
          othersInFlight: 0,
          breaker: CLOSED,
          busyUntil: 0,
        });
        continue;
      }
      // Another address is another engine to connect to: the old one's faults say nothing of it.
      if (!sameOrigin(live.endpoint.origin, endpoint.origin)) live.breaker = CLOSED;
      live.endpoint = endpoint;
    }
  }

  #slot(endpoint: Endpoint): Slot {
    const live = this.#live.get(endpoint.replicaId);
    if (live === undefined) throw new Error(`No live state for ${endpoint.replicaId}`);
    const { now } = this.#options;
    live.inFlight++;
    const probing = settle(live.breaker, now()).kind === "half_open";
    live.breaker = sent(live.breaker, now());
    let judged = false;
    let released = false;
    return {
      endpoint,
      judge: (judgement) => {
        judged = true;
        judge(live, judgement, now());
      },
      [Symbol.dispose]: () => {
        if (released) return;
        released = true;
        live.inFlight--;
        if (probing && !judged) live.breaker = withdrawn(live.breaker);
        const gone = !this.#table.endpoints.has(endpoint.replicaId);
        if (gone && live.inFlight === 0) this.#live.delete(endpoint.replicaId);
      },
    };
  }
}

function judge(live: Live, { kind, retryAfterMs }: Judgement, now: number): void {
  if (kind === "busy") {
    // It answered, so it lives; only its queue is full.
    live.breaker = withdrawn(live.breaker);
    live.busyUntil = Math.max(live.busyUntil, now + Math.min(retryAfterMs, BUSY_MAX_MS));
    return;
  }
  live.breaker = after(live.breaker, { kind, retryAfterMs }, now);
}

/** Longest time for which a full engine is asked last: its queue moves faster than it thinks. */
const BUSY_MAX_MS = 30_000;
