/**
 * The endpoints with their present: the routing table in force and, beside it, what only this
 * router knows of each replica. A new table keeps the present of every endpoint that it still has;
 * one that left it lives on until its last request has ended.
 *
 * This is the one writer of both.
 */
import type { ModelFullness } from "./core/admission/admission.ts";
import type { BreakerState } from "./core/fleet/breaker.ts";
import type { Endpoint } from "./core/fleet/endpoint.ts";
import type { Judgement } from "./core/fleet/judgement.ts";
import {
  apply,
  EMPTY_TABLE,
  overlay,
  type Table,
  type TableFold,
  type TableUpdate,
} from "./core/fleet/table.ts";
import type { EngineSample } from "./core/load/engine_sample.ts";
import {
  type FirstTokenLine,
  type FirstTokens,
  lineOf,
  measured,
  NO_FIRST_TOKENS,
} from "./core/load/first_token.ts";
import { Replica } from "./core/load/replica.ts";
import { fullnessOf, type SaturationTargets } from "./core/load/saturation.ts";
import type { Ask } from "./core/schedule/ask.ts";
import type { Candidate } from "./core/schedule/candidate.ts";
import { type Pick, pick } from "./core/schedule/pick.ts";

/** A request's place at an endpoint. Disposing it frees the place, once. */
export interface Slot extends Disposable {
  readonly endpoint: Endpoint;
  /** The first token came. */
  firstToken(): void;
  /** The engine says how much of the prompt it had in its cache. */
  cached(tokens: number): void;
  /** Tells what the try says of the endpoint; a slot without a judgement says nothing. */
  judge(judgement: Judgement): void;
}

export interface ReplicaPresent {
  readonly replicaId: string;
  readonly model: string;
  readonly inFlight: number;
  readonly reservedTokens: number;
  readonly breaker: BreakerState;
  /** Requests in flight at which it is full. */
  readonly capacity: number;
  /** Which engine it is: "vllm", "llamacpp" and so on. */
  readonly engineName: string;
  /** What the engine said last, and how long ago; undefined when it never did. */
  readonly engine: { readonly sample: EngineSample; readonly ageMs: number } | undefined;
  /** Blocks of prompts that its cache is thought to have, and how right that has been, 0 to 1. */
  readonly prefixBlocks: number;
  readonly prefixTrust: number;
}

export interface SchedulingOptions {
  /** What an engine said longer ago than this is not known any more. */
  readonly staleMs: number;
  readonly targets: SaturationTargets;
  /** A replica's capacity where router.yaml sets it, by model; otherwise the catalog's counts. */
  readonly capacityOf: (model: string) => number | undefined;
}

export interface EndpointsOptions {
  /** Endpoints that no control manages. */
  readonly fixed: Table;
  /** Milliseconds, monotonic. */
  readonly now: () => number;
  /** In [0,1). */
  readonly random: () => number;
  readonly scheduling: SchedulingOptions;
  /** Tells what a prompt's cached part was thought to be, and was. */
  readonly onCached?: (expectedTokens: number, foundTokens: number) => void;
}

export class Endpoints {
  readonly #options: EndpointsOptions;
  readonly #live = new Map<string, Replica>();
  /** How soon first tokens come, over all replicas of a model. */
  readonly #firstTokens = new Map<string, FirstTokens>();
  readonly #waiters = new Set<() => void>();
  readonly #listeners = new Set<() => void>();
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
    for (const tell of this.#listeners) tell();
  }

  /** Drops the chunks of a snapshot whose stream broke off. */
  forgetPending(): void {
    this.#fold = { table: this.#fold.table, pending: [] };
  }

  /** Calls `listener` after every change of what there is, or of what the other routers have there. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener);
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
  take(model: string, ask: Ask): Slot | Extract<Pick, { kind: "none" }> {
    const now = this.#options.now();
    const options = {
      promptTokens: ask.promptTokens,
      blocks: ask.blocks,
      usual: this.#usual(model, now),
      ...this.#settings(model),
    };
    const candidates = this.#replicasOf(model).map((replica) => replica.candidate(options, now));
    const picked = pick({
      candidates,
      wanted: ask,
      weights: ask.weights,
      chance: this.#options.random(),
      now,
    });
    if (picked.kind === "none") return picked;
    ask.onPicked?.(picked);
    return this.#slot(picked.candidate, ask);
  }

  /** Takes what the other routers have in flight; who is not named has nothing. */
  setOthers(
    others: readonly {
      readonly replicaId: string;
      readonly inFlight: number;
      readonly reservedTokens: number;
    }[],
  ): void {
    const byId = new Map<string, { inFlight: number; reservedTokens: number }>();
    for (const { replicaId, inFlight, reservedTokens } of others) {
      const sum = byId.get(replicaId) ?? { inFlight: 0, reservedTokens: 0 };
      sum.inFlight += inFlight;
      sum.reservedTokens += reservedTokens;
      byId.set(replicaId, sum);
    }
    for (const [id, { load }] of this.#live) load.setOthers(byId.get(id) ?? NOTHING);
    for (const tell of this.#listeners) tell();
  }

  /** Takes what an engine said of its load. */
  observe(replicaId: string, sample: EngineSample): void {
    this.#live.get(replicaId)?.observe(sample, this.#options.now());
  }

  /** How full the replicas of `model` are that may be used. */
  fullness(model: string): ModelFullness {
    const now = this.#options.now();
    const { staleMs, capacity, targets } = this.#settings(model);
    let own = 0;
    const replicas = this.#replicasOf(model).flatMap((replica) => {
      own += replica.load.inFlight;
      if (replica.endpoint.draining || replica.breaker(now).kind === "open") return [];
      const present = replica.load.present(now, staleMs);
      return [{
        inFlight: replica.load.all,
        capacity: replica.capacity(capacity),
        standing: present.standing,
        kvUsage: present.kvUsage,
      }];
    });
    return { ...fullnessOf(replicas, targets), own };
  }

  /** Every replica as it is now, also one that has left the table and still has requests. */
  replicas(): readonly ReplicaPresent[] {
    const now = this.#options.now();
    return [...this.#live].map(([replicaId, replica]) => ({
      replicaId,
      model: replica.endpoint.model,
      inFlight: replica.load.inFlight,
      reservedTokens: replica.load.reservedTokens,
      breaker: replica.breaker(now).kind,
      capacity: replica.capacity(this.#settings(replica.endpoint.model).capacity),
      engineName: replica.endpoint.engine,
      engine: replica.load.told(now),
      prefixBlocks: replica.prefixes.size,
      prefixTrust: replica.prefixes.trust,
    }));
  }

  #settings(model: string) {
    const { staleMs, targets, capacityOf } = this.#options.scheduling;
    return {
      staleMs,
      targets,
      capacity: capacityOf(model) ?? this.#table.models.get(model)?.capacity,
    };
  }

  #replicasOf(model: string): readonly Replica[] {
    const found: Replica[] = [];
    for (const { replicaId } of this.#table.byModel.get(model) ?? []) {
      const replica = this.#live.get(replicaId);
      if (replica !== undefined) found.push(replica);
    }
    return found;
  }

  #usual(model: string, now: number): FirstTokenLine {
    return lineOf(this.#firstTokens.get(model) ?? NO_FIRST_TOKENS, now);
  }

  #reconcile(): void {
    for (const [id, replica] of this.#live) {
      if (!this.#table.endpoints.has(id) && replica.load.inFlight === 0) this.#live.delete(id);
    }
    for (const [id, endpoint] of this.#table.endpoints) {
      const replica = this.#live.get(id);
      if (replica === undefined) this.#live.set(id, new Replica(endpoint));
      else replica.moved(endpoint);
    }
    const blocks = Math.floor(PREFIX_BLOCKS_MAX / Math.max(1, this.#live.size));
    for (const { prefixes } of this.#live.values()) prefixes.bound(blocks);
    for (const model of this.#firstTokens.keys()) {
      if (!this.#table.models.has(model)) this.#firstTokens.delete(model);
    }
  }

  #slot(
    { endpoint, cachedTokens }: Candidate,
    { blocks, promptTokens, tokens, streamed }: Ask,
  ): Slot {
    const { replicaId, model } = endpoint;
    const replica = this.#live.get(replicaId);
    if (replica === undefined) throw new Error(`No live state for ${replicaId}`);
    const { now, onCached } = this.#options;
    const expected = replica.cachedTokens(blocks, promptTokens);
    const uncached = promptTokens - cachedTokens;
    const work = replica.load.begin({ tokens, uncached, streamed }, now());
    if (blocks !== undefined) replica.prefixes.add(blocks.hashes);
    const probing = replica.send(now());
    let judged = false;
    let released = false;
    return {
      endpoint,
      firstToken: () => {
        const at = now();
        if (!replica.load.firstToken(work, at)) return;
        const sums = this.#firstTokens.get(model) ?? NO_FIRST_TOKENS;
        const sample = { tokens: work.ahead, ms: at - work.sentAt };
        this.#firstTokens.set(model, measured(sums, sample, at));
      },
      cached: (found) => {
        replica.prefixes.learn(expected, found);
        onCached?.(cachedTokens, found);
      },
      judge: (judgement) => {
        judged = true;
        replica.judge(judgement, now());
      },
      [Symbol.dispose]: () => {
        if (released) return;
        released = true;
        replica.load.end(work);
        if (probing && !judged) replica.withdraw();
        const gone = !this.#table.endpoints.has(replicaId);
        if (gone && replica.load.inFlight === 0) this.#live.delete(replicaId);
      },
    };
  }
}

/** Blocks of prompts that are kept for all replicas together: some 200 MiB. */
const PREFIX_BLOCKS_MAX = 2 ** 21;

const NOTHING = { inFlight: 0, reservedTokens: 0 };
