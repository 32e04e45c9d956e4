/** Runs the engine on a real clock: wakes when a step is over and hands its outputs out. */
import type { Engine, EngineOutput } from "../core/engine/engine.ts";
import type { SequenceRequest } from "../core/engine/sequence.ts";

/** Hears of a request's outputs, in order. */
export type OutputListener = (outputs: readonly EngineOutput[]) => void;

/** Steps handled in one turn of the event loop, so that a fast engine cannot starve its server. */
const STEPS_PER_TURN_MAX = 2_000;

export interface DriverOptions {
  readonly engine: Engine;
  readonly clock: Clock;
  /** Hears how many tokens were generated, after they were handed out. */
  readonly onTokens: (count: number) => void;
  /** Whether each step is handed out before the next is computed, so that a fault strikes at its very token. */
  readonly stepwise: boolean;
}

export interface Clock {
  /** Ms that never go back. */
  now(): number;
}

/** A request in the engine; disposing it frees what it still holds there, at once. */
export interface Running extends Disposable {
  /** Ends its sequences as failed, not as abandoned. */
  fail(): void;
}

export class Driver implements Disposable {
  readonly #options: DriverOptions;
  readonly #engine: Engine;
  readonly #clock: Clock;
  readonly #listeners = new Map<string, OutputListener>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #closed = false;

  constructor(options: DriverOptions) {
    this.#options = options;
    this.#engine = options.engine;
    this.#clock = options.clock;
  }

  submit(sequences: readonly SequenceRequest[], listener: OutputListener): Running {
    this.#pump();
    for (const sequence of sequences) {
      this.#listeners.set(sequence.id, listener);
      this.#engine.submit(sequence, this.#clock.now());
    }
    this.#engine.metrics.accepted(sequences.length);
    this.#arm();
    const end = (reason: "abort" | "error") => {
      for (const { id } of sequences) {
        if (this.#listeners.delete(id)) this.#engine.abort(id, this.#clock.now(), reason);
      }
      this.#arm();
    };
    return { fail: () => end("error"), [Symbol.dispose]: () => end("abort") };
  }

  /** Stands still; for `forMs` when that is above 0. */
  hang(forMs: number): void {
    this.#engine.hang(this.#clock.now());
    this.#disarm();
    if (forMs > 0) this.#timer = setTimeout(() => this.#resume(), forMs);
  }

  [Symbol.dispose](): void {
    this.#closed = true;
    this.#disarm();
  }

  #resume(): void {
    this.#timer = undefined;
    this.#engine.resume(this.#clock.now());
    this.#arm();
  }

  #pump(): void {
    const now = this.#clock.now();
    if (!this.#options.stepwise) {
      this.#handOut(this.#engine.advance(now, STEPS_PER_TURN_MAX));
      return;
    }
    for (let steps = 0; steps < STEPS_PER_TURN_MAX; steps += 1) {
      this.#handOut(this.#engine.advance(now, 1));
      if ((this.#engine.nextEventAt() ?? Infinity) > now) return;
    }
  }

  #handOut(outputs: readonly EngineOutput[]): void {
    if (outputs.length === 0) return;
    const byListener = new Map<OutputListener, EngineOutput[]>();
    let tokens = 0;
    for (const output of outputs) {
      if (output.token !== undefined) tokens += 1;
      const listener = this.#listeners.get(output.id);
      if (listener === undefined) continue;
      if (output.finish !== undefined) this.#listeners.delete(output.id);
      const list = byListener.get(listener);
      if (list === undefined) byListener.set(listener, [output]);
      else list.push(output);
    }
    for (const [listener, list] of byListener) listener(list);
    if (tokens > 0) this.#options.onTokens(tokens);
  }

  #arm(): void {
    const next = this.#engine.nextEventAt();
    // While it hangs the timer, if any, is the one that ends the hang.
    if (next === undefined && this.#engine.hanging) return;
    this.#disarm();
    if (next === undefined || this.#closed) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#pump();
      this.#arm();
    }, Math.max(0, next - this.#clock.now()));
  }

  #disarm(): void {
    if (this.#timer !== undefined) clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
