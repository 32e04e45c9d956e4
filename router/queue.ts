/**
 * Admission, with its waits: for a model that is asleep, and for room at its replicas. Every request
 * that enters leaves through the place it was given, whatever happens.
 */
import { Admission, type ModelFullness, type WaitingCount } from "./core/admission/admission.ts";
import type { Bounds, Ticket, WaitReason } from "./core/admission/model_queue.ts";
import { expired, full } from "./core/admission/refusals.ts";
import type { Model } from "./core/fleet/endpoint.ts";
import { CLIENT_CLOSED, next, refuse, type Step } from "./core/request/outcome.ts";
import type { Resolved } from "./core/schedule/resolve.ts";

/** What admission asks of the endpoints. */
export interface Fleet {
  /** Whether the model has an endpoint that takes new requests. */
  serves(model: string): boolean;
  /** The model as the table in force knows it. */
  model(name: string): Model | undefined;
  /** How full the model's replicas are. */
  fullness(model: string): ModelFullness;
  /** Resolves at the next change of the table, or when `signal` aborts. */
  changed(signal: AbortSignal): Promise<void>;
  /** Asks control to start a sleeping model; never throws. */
  wake(model: string): void;
}

export interface QueueOptions {
  readonly fleet: Fleet;
  readonly requestsInFlightMax: number;
  readonly holdMs: number;
  readonly bounds: Bounds;
  /** Milliseconds, monotonic. */
  readonly now: () => number;
}

/** What a request brings to its admission. */
export type Entry = Omit<Ticket, "enteredAt">;

/** A request that was let in, with its place. */
export interface Admitted extends Disposable {
  /** Models that have an endpoint, best first. */
  readonly models: readonly Model[];
  /** How long it waited for room, in ms, and why. */
  readonly waitedMs: number;
  readonly why: WaitReason;
  /** What it cost in tokens, which its tenant is charged instead of the estimate. */
  settle(tokens: number): void;
}

/** What a client is told to wait when nothing says how long it takes. */
const RETRY_AFTER_S = 5;
/** Starting a model takes long: asking again every few seconds helps nobody. */
const RETRY_AFTER_WAKING_S = 30;
/** While requests wait, how often it is looked whether any may go that no other event would tell. */
const LOOK_MS = 100;

const SHUTTING_DOWN = {
  reason: "shutting_down",
  message: "This router is shutting down",
  retryAfterS: 1,
} as const;

interface Place {
  readonly why: WaitReason;
  readonly waitedMs: number;
  /** Gives it back; `tokens` is what the request cost, if known. */
  readonly end: (tokens: number | undefined) => void;
}

export class Queue {
  readonly #options: QueueOptions;
  readonly #admission: Admission;
  readonly #held = new Map<string, number>();
  /** Who waits for room, and is to be told. */
  readonly #waiters = new Map<Ticket, () => void>();
  readonly #closing = new AbortController();
  #inFlight = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: QueueOptions) {
    this.#options = options;
    const { bounds, fleet } = options;
    this.#admission = new Admission({ bounds, fullness: (model) => fleet.fullness(model) });
  }

  /** Requests between their arrival here and their end. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** Requests that wait, for each model: held while it is asleep, or queued for room. */
  get waiting(): ReadonlyMap<string, number> {
    const counts = new Map(this.#held);
    for (const { model, requests } of this.#admission.waiting()) {
      counts.set(model, (counts.get(model) ?? 0) + requests);
    }
    return counts;
  }

  /** Requests held for each model that is asleep. */
  get held(): ReadonlyMap<string, number> {
    return this.#held;
  }

  /** Requests queued for room. */
  queued(): readonly WaitingCount[] {
    return this.#admission.waiting();
  }

  saturations(): readonly { readonly model: string; readonly saturation: number }[] {
    return this.#admission.saturations(this.#options.now());
  }

  /** From now on no request is held for a model, and those that are held are let go. */
  stopHolding(): void {
    this.#closing.abort();
  }

  /** The replicas, or what they say of themselves, have changed. */
  lookAgain(): void {
    this.#admission.lookAgain();
    this.#admission.prune((model) => this.#options.fleet.model(model) !== undefined);
    for (const model of this.#admission.waitingModels) this.#pump(model);
  }

  /** Lets a request in, once one of its models has an endpoint and room there, or says why not. */
  async admit(resolved: Resolved, entry: Entry, gone: AbortSignal): Promise<Step<Admitted>> {
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
      const admitted = await this.#admit(resolved, { entry, release }, gone);
      if (admitted.kind === "end") release();
      return admitted;
    } catch (error) {
      release();
      throw error;
    }
  }

  async #admit(
    resolved: Resolved,
    { entry, release }: { readonly entry: Entry; readonly release: () => void },
    gone: AbortSignal,
  ): Promise<Step<Admitted>> {
    const models = await this.#modelsThatServe(resolved, gone);
    if (models.kind === "end") return models;
    const [first] = models.value;
    if (first === undefined) throw new Error("Admission found no model and did not say so");
    const place = await this.#place(first.name, entry, gone);
    if (place.kind === "end") return place;
    const { why, waitedMs, end } = place.value;
    let ended = false;
    let tokens: number | undefined;
    return next({
      models: models.value,
      why,
      waitedMs,
      settle: (used) => {
        tokens = used;
      },
      [Symbol.dispose]: () => {
        if (ended) return;
        ended = true;
        end(tokens);
        release();
      },
    });
  }

  /** Waits for room. Whoever is let in after having left gives the place back at once. */
  async #place(model: string, entry: Entry, gone: AbortSignal): Promise<Step<Place>> {
    const { now } = this.#options;
    const ticket: Ticket = { ...entry, enteredAt: now() };
    const end = (tokens: number | undefined) => {
      this.#admission.end(model, ticket, { tokens, now: now() });
      this.#pump(model);
    };
    const entered = this.#admission.enter(model, ticket, ticket.enteredAt);
    if (entered.kind === "let_in") return next({ why: "none", waitedMs: 0, end });
    if (entered.kind === "full") return refuse(full(model, entry.band, entered));
    const waited = await this.#wait(model, ticket, gone);
    const waitedMs = now() - ticket.enteredAt;
    if (waited === "let_in") return next({ why: entered.why, waitedMs, end });
    if (waited === "gone") return CLIENT_CLOSED;
    const estimateMs = this.#admission.estimateMs(model, entry.band, now());
    return refuse(expired(model, entry.band, { waitedMs, estimateMs }));
  }

  #wait(model: string, ticket: Ticket, gone: AbortSignal): Promise<"let_in" | "gone" | "expired"> {
    return new Promise((resolve) => {
      const settle = (how: "let_in" | "gone" | "expired") => {
        clearTimeout(timer);
        gone.removeEventListener("abort", left);
        this.#waiters.delete(ticket);
        if (this.#waiters.size === 0) this.#stopLooking();
        if (how !== "let_in") this.#admission.leave(model, ticket);
        resolve(how);
      };
      const left = () => settle("gone");
      const timer = setTimeout(
        () => settle("expired"),
        this.#options.bounds[ticket.band].waitMsMax,
      );
      this.#waiters.set(ticket, () => settle("let_in"));
      gone.addEventListener("abort", left);
      if (gone.aborted) left();
      else this.#lookLater();
    });
  }

  #pump(model: string): void {
    for (const ticket of this.#admission.pump(model, this.#options.now())) {
      const letIn = this.#waiters.get(ticket);
      if (letIn === undefined) throw new Error("A request was let in that does not wait");
      letIn();
    }
  }

  #stopLooking(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Headroom fades and heads starve with time alone. */
  #lookLater(): void {
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      for (const model of this.#admission.waitingModels) this.#pump(model);
      if (this.#waiters.size > 0) this.#lookLater();
    }, LOOK_MS);
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
    this.#held.set(model, (this.#held.get(model) ?? 0) + 1);
    const expired = new AbortController();
    const timer = setTimeout(() => expired.abort(), this.#options.holdMs);
    const signal = AbortSignal.any([gone, expired.signal, this.#closing.signal]);
    try {
      while (!done() && !signal.aborted) await this.#options.fleet.changed(signal);
    } finally {
      clearTimeout(timer);
      const left = (this.#held.get(model) ?? 1) - 1;
      if (left > 0) this.#held.set(model, left);
      else this.#held.delete(model);
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
