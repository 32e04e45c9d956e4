/**
 * Admission: a bound on requests in flight, and the place where a request waits for a model that
 * is asleep. Every request that enters leaves through the slot it was given, whatever happens.
 */
import type { Model } from "./core/fleet/endpoint.ts";
import { CLIENT_CLOSED, next, refuse, type Step } from "./core/request/outcome.ts";
import type { Resolved } from "./core/schedule/resolve.ts";

/** What admission asks of the endpoints. */
export interface Fleet {
  /** Whether the model has an endpoint that takes new requests. */
  serves(model: string): boolean;
  /** The model as the table in force knows it. */
  model(name: string): Model | undefined;
  /** Resolves at the next change of the table, or when `signal` aborts. */
  changed(signal: AbortSignal): Promise<void>;
  /** Asks control to start a sleeping model; never throws. */
  wake(model: string): void;
}

export interface QueueOptions {
  readonly fleet: Fleet;
  readonly requestsInFlightMax: number;
  readonly holdMs: number;
}

/** A request that was let in, with its place. */
export interface Admitted extends Disposable {
  /** Models that have an endpoint, best first. */
  readonly models: readonly Model[];
}

/** What a client is told to wait when nothing says how long it takes. */
const RETRY_AFTER_S = 5;
/** Starting a model takes long: asking again every few seconds helps nobody. */
const RETRY_AFTER_WAKING_S = 30;

const SHUTTING_DOWN = {
  reason: "shutting_down",
  message: "This router is shutting down",
  retryAfterS: 1,
} as const;

export class Queue {
  readonly #options: QueueOptions;
  readonly #waiting = new Map<string, number>();
  #inFlight = 0;
  readonly #closing = new AbortController();

  constructor(options: QueueOptions) {
    this.#options = options;
  }

  /** Requests between their admission and their end. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** Requests held for each model that is asleep. */
  get waiting(): ReadonlyMap<string, number> {
    return this.#waiting;
  }

  /** From now on no request is held for a model, and those that are held are let go. */
  stopHolding(): void {
    this.#closing.abort();
  }

  /** Lets a request in, once one of its models has an endpoint, or says why not. */
  async admit(resolved: Resolved, gone: AbortSignal): Promise<Step<Admitted>> {
    if (this.#inFlight >= this.#options.requestsInFlightMax) {
      return refuse({
        reason: "in_flight_full",
        message: `This router has ${this.#inFlight} requests in flight and takes no more for now`,
        retryAfterS: RETRY_AFTER_S,
      });
    }
    this.#inFlight++;
    let released = false;
    const release = () => {
      if (!released) this.#inFlight--;
      released = true;
    };
    try {
      const models = await this.#modelsThatServe(resolved, gone);
      if (models.kind === "end") release();
      return models.kind === "end"
        ? models
        : next({ models: models.value, [Symbol.dispose]: release });
    } catch (error) {
      release();
      throw error;
    }
  }

  async #modelsThatServe(
    resolved: Resolved,
    gone: AbortSignal,
  ): Promise<Step<readonly Model[]>> {
    const { fleet } = this.#options;
    const ready = () => resolved.models.filter(({ name }) => fleet.serves(name));
    const [asked] = resolved.models;
    if (asked.wakeable && !fleet.serves(asked.name)) fleet.wake(asked.name);
    const now = ready();
    if (now.length > 0) return next(now);
    if (!asked.wakeable) return refuse(unavailable(resolved.asked, asked));
    await this.#hold(asked.name, () => ready().length > 0, gone);
    if (gone.aborted) return CLIENT_CLOSED;
    const later = ready();
    if (later.length > 0) return next(later);
    if (this.#closing.signal.aborted) return refuse(SHUTTING_DOWN);
    return refuse({
      ...unavailable(resolved.asked, fleet.model(asked.name) ?? asked),
      retryAfterS: RETRY_AFTER_WAKING_S,
    });
  }

  async #hold(model: string, done: () => boolean, gone: AbortSignal): Promise<void> {
    this.#waiting.set(model, (this.#waiting.get(model) ?? 0) + 1);
    const expired = new AbortController();
    const timer = setTimeout(() => expired.abort(), this.#options.holdMs);
    const signal = AbortSignal.any([gone, expired.signal, this.#closing.signal]);
    try {
      while (!done() && !signal.aborted) await this.#options.fleet.changed(signal);
    } finally {
      clearTimeout(timer);
      const left = (this.#waiting.get(model) ?? 1) - 1;
      if (left > 0) this.#waiting.set(model, left);
      else this.#waiting.delete(model);
    }
  }
}

/** The refusal for a model that is known and has no endpoint, with control's reason. */
export function unavailable(asked: string, model: Model) {
  const why = model.reason === "" ? "no replica of it is ready" : model.reason;
  return {
    reason: "model_unavailable",
    message: `The model "${asked}" cannot serve now: ${why}`,
    param: "model",
    retryAfterS: RETRY_AFTER_S,
  } as const;
}
