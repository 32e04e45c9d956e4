/**
 * The single writer: owns the world, folds events into it, and executes what the core decides.
 * Decisions are recorded before anything is sent, so that a crash between any two lines is harmless.
 */
import { HeddleError } from "@heddle/proto/error";
import { checkPlan, type Violation } from "./core/check_plan.ts";
import type { Event } from "./core/event.ts";
import type { EpochMs, NodeId } from "./core/ids.ts";
import { type Beat, observeHeartbeats } from "./core/observing/heartbeat.ts";
import { matters } from "./core/observing/matters.ts";
import { observe } from "./core/observing/observe.ts";
import type { Plan, ShardCommand } from "./core/plan.ts";
import { publish } from "./core/publish.ts";
import type { Published } from "./core/published.ts";
import { isCommand, reconcile } from "./core/reconcile.ts";
import { failureRecords } from "./core/deciding/failures.ts";
import { record } from "./core/deciding/record.ts";
import { isOperatorEvent, type StoreRecord, storeRecords } from "./core/store_record.ts";
import type { World } from "./core/world.ts";

/** What the loop does to the world outside. Each may throw a HeddleError. */
export interface Effects {
  /**
   * Puts a command on the node's stream without waiting. Throws when the node is away or its queue
   * is full; the command stays recorded and is sent again after its deadline.
   */
  sendCommand(node: NodeId, command: ShardCommand): void;
  /** Hands the newest publication to every Watch stream. */
  publish(published: Published): void;
  /** Stores what must survive, in one transaction, before it takes effect. */
  persist(records: readonly StoreRecord[]): Promise<void>;
  /**
   * Stores what has happened already, in one transaction. When the store refuses, only a restart of
   * control would miss it, and it is given again later.
   */
  remember(records: readonly StoreRecord[]): Promise<void>;
  /** False while it is not known whether this control leads: then a pass does nothing. */
  leads(): boolean;
}

/** Time, so that tests own it. */
export interface Clock {
  now(): EpochMs;
  /** Calls `wake` once after `ms`; the result cancels it. */
  setTimer(ms: number, wake: () => void): () => void;
}

/** For logs and metrics; must not throw. */
export interface LoopHooks {
  /** After each pass. With violations, nothing of the plan was done. */
  passed(pass: Pass): void;
  /** One action, publication or pass failed; the loop goes on. `what` begins a sentence. */
  failed(what: string, error: unknown): void;
}

export interface Pass {
  readonly plan: Plan;
  readonly violations: readonly Violation[];
  readonly durationMs: number;
  readonly world: World;
}

export interface LoopOptions {
  readonly world: World;
  readonly clock: Clock;
  readonly effects: Effects;
  readonly hooks: LoopHooks;
}

export interface Loop {
  /**
   * Folds an event in and schedules a pass, in the order in which events come: before this returns,
   * unless it must be stored first, or waits for one that must. Resolves when it took effect; when
   * the store refuses, rejects with its error, and the event changed nothing. Once stopped, what
   * would have to be stored is refused and the rest ignored.
   */
  dispatch(event: Event): Promise<void>;
  /** The newest world, heartbeats included. */
  world(): World;
  now(): EpochMs;
  /** Ends the timers; nothing is executed afterwards. */
  stop(): void;
}

/** Shortest time between two passes, in ms: a fleet that reports all at once is one pass's work. */
const PASS_GAP_MS = 250;

/** Longest timer that the runtime keeps, in ms; a later wake is asked for again when it fires. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** After a plan was dropped nothing has changed, so the next try waits for an event, or this long. */
const AFTER_VIOLATION_MS = 5_000;

/** After the store has refused what happened, it is asked again in the first pass after so long. */
const REMEMBER_AGAIN_MS = 5_000;

/** While it is not known who leads, a pass that is due is put off by this much. */
const UNSURE_MS = 500;

/** Starts with a pass and runs until stopped. The world's term has been stored already. */
export function createLoop(options: LoopOptions): Loop {
  return new SingleWriter(options);
}

const DONE = Promise.resolve();

class SingleWriter implements Loop {
  readonly #clock: Clock;
  readonly #effects: Effects;
  readonly #hooks: LoopHooks;
  #world: World;
  /** The newest sign of life of each node that changed no decision; folded in before each pass. */
  readonly #beats = new Map<NodeId, Beat>();
  #lastPassAt = -Infinity;
  /** Settles when the last of the events that wait for the store has been taken; never rejects. */
  #last: Promise<void> | undefined;
  /** Models as the store is known to have them. */
  #stored: World["models"];
  #remembering = false;
  #rememberFrom: EpochMs = -Infinity;
  #timer: { readonly at: EpochMs; cancel(): void } | undefined;
  #stopped = false;

  constructor({ world, clock, effects, hooks }: LoopOptions) {
    this.#world = world;
    this.#stored = world.models;
    this.#clock = clock;
    this.#effects = effects;
    this.#hooks = hooks;
    this.#passAt(clock.now());
  }

  dispatch(event: Event): Promise<void> {
    const now = this.#clock.now();
    if (event.kind === "heartbeat" && !this.#stopped && !matters(this.#world, event, now)) {
      this.#beats.set(event.node, { ...event, at: now });
      return DONE;
    }
    const turn = this.#last === undefined
      ? this.#take(event, now)
      : this.#last.then(() => this.#take(event, now));
    if (turn === undefined) return DONE;
    const taken = turn.finally(() => {
      if (this.#last === last) this.#last = undefined;
    });
    const last = taken.catch(() => {});
    this.#last = last;
    return taken;
  }

  world(): World {
    this.#foldBeats();
    return this.#world;
  }

  now(): EpochMs {
    return this.#clock.now();
  }

  /** Undefined when the event took effect at once. */
  #take(event: Event, now: EpochMs): Promise<void> | undefined {
    this.#foldBeats();
    const next = observe(this.#world, event, now);
    const records = storeRecords(this.#world, next, event, now);
    if (this.#stopped) return records.length === 0 ? undefined : Promise.reject(leadsNoMore());
    if (records.length === 0) {
      this.#accept(event, next, now);
      return undefined;
    }
    return this.#effects.persist(records).then(() => {
      if (this.#stopped) throw leadsNoMore();
      // Observed again: passes have gone on. No event came between that would change what is stored.
      this.#foldBeats();
      this.#accept(event, observe(this.#world, event, now), now);
    });
  }

  #accept(event: Event, next: World, now: EpochMs): void {
    const due = matters(this.#world, event, now);
    this.#world = next;
    this.#remember();
    if (!due) return;
    const atOnce = isOperatorEvent(event) || event.kind === "catalog_applied";
    this.#passAt(atOnce ? this.#clock.now() : Math.max(now, this.#lastPassAt + PASS_GAP_MS));
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #foldBeats(): void {
    if (this.#beats.size === 0) return;
    this.#world = observeHeartbeats(this.#world, this.#beats.values());
    this.#beats.clear();
  }

  /** One timer, at the earliest time that anything asked for. */
  #passAt(at: EpochMs): void {
    if (this.#stopped || (this.#timer !== undefined && this.#timer.at <= at)) return;
    this.#timer?.cancel();
    // A timer that fires a little early would find nothing due and ask again at once.
    const waitMs = Math.min(Math.max(0, Math.ceil(at - this.#clock.now())), TIMER_MS_MAX);
    const cancel = this.#clock.setTimer(waitMs, () => {
      this.#timer = undefined;
      this.#pass();
    });
    this.#timer = { at, cancel };
  }

  #pass(): void {
    const now = this.#clock.now();
    if (!this.#effects.leads()) return this.#passAt(now + UNSURE_MS);
    this.#lastPassAt = now;
    try {
      const plan = this.#decide(now);
      if (plan === undefined) this.#passAt(now + AFTER_VIOLATION_MS);
      else if (plan.wakeAt !== undefined) this.#passAt(Math.max(plan.wakeAt, now + PASS_GAP_MS));
    } catch (error) {
      this.#hooks.failed("A pass failed", error);
      this.#passAt(now + AFTER_VIOLATION_MS);
    }
  }

  /** Decides, records, then acts. Undefined when the plan broke a rule and was dropped whole. */
  #decide(now: EpochMs): Plan | undefined {
    this.#foldBeats();
    const before = this.#world;
    const plan = reconcile(before, now);
    const violations = checkPlan(before, plan, now);
    if (violations.length === 0) this.#world = publish(record(before, plan, now), now);
    const world = this.#world;
    this.#hooks.passed({ plan, violations, durationMs: this.#clock.now() - now, world });
    if (violations.length > 0) return undefined;
    this.#remember();
    // Routers first: what is about to be stopped should have left their lists.
    if (world.published !== before.published) {
      this.#attempt("Cannot publish", () => this.#effects.publish(world.published));
    }
    for (const action of plan.actions) {
      if (!isCommand(action)) continue;
      const what = `Cannot send ${action.kind} for ${action.shard} to ${action.node}`;
      this.#attempt(what, () => this.#effects.sendCommand(action.node, action));
    }
    return plan;
  }

  /**
   * Stores which starts failed, and which failed for good, behind the decisions: cleaning up after a
   * failure must not wait for a store that is full or away. Whatever was missed is in the next write.
   */
  #remember(): void {
    if (this.#remembering || this.#stopped || this.#clock.now() < this.#rememberFrom) return;
    const { models } = this.#world;
    const records = failureRecords(this.#stored, models);
    if (records.length === 0) {
      this.#stored = models;
      return;
    }
    this.#remembering = true;
    this.#effects.remember(records).then(() => {
      this.#stored = models;
      this.#remembering = false;
      this.#remember();
    }, (error) => {
      this.#remembering = false;
      this.#rememberFrom = this.#clock.now() + REMEMBER_AGAIN_MS;
      this.#passAt(this.#rememberFrom);
      this.#hooks.failed("Cannot store which starts failed, for a restart of control", error);
    });
  }

  #attempt(what: string, act: () => void): void {
    if (this.#stopped) return;
    try {
      act();
    } catch (error) {
      this.#hooks.failed(what, error);
    }
  }
}

function leadsNoMore(): HeddleError {
  return new HeddleError(
    "unavailable",
    "Cannot decide anything: this control does not lead any more",
  );
}
