/**
 * Admission of all models: one queue each, let in as far as their replicas have room. Sync and
 * without a clock; whoever owns it tells it when something has changed, and what became of tickets.
 * A ticket is let in, rejected, or leaves, exactly once; one that was let in ends exactly once.
 */
import type { Band } from "./band.ts";
import { type Bounds, ModelQueue, type Ticket, type WaitReason } from "./model_queue.ts";
import type { Fullness } from "../load/saturation.ts";

/** How full a model is, and how many of this router's requests that includes. */
export interface ModelFullness extends Fullness {
  readonly own: number;
}

export interface AdmissionOptions {
  readonly bounds: Bounds;
  readonly fullness: (model: string) => ModelFullness;
}

export type Entered =
  | { readonly kind: "let_in" }
  | { readonly kind: "waits"; readonly why: WaitReason }
  /** The band's queue is full; a new request would wait so long, in ms, if known. */
  | { readonly kind: "full"; readonly waiting: number; readonly estimateMs: number | undefined };

export interface WaitingCount {
  readonly model: string;
  readonly band: Band;
  readonly requests: number;
  readonly bytes: number;
}

/** How old a look at all replicas may be; in between, what was let in and has ended is counted. */
const LOOK_MS_MAX = 50;

export class Admission {
  readonly #options: AdmissionOptions;
  readonly #queues = new Map<string, ModelQueue>();
  readonly #looks = new Map<string, { readonly fullness: ModelFullness; readonly at: number }>();

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  /** Takes a request on. One that waits is let in by `pump`, unless it `leave`s before. */
  enter(model: string, ticket: Ticket, now: number): Entered {
    const queue = this.#queue(model, now);
    const fullness = this.#fullness(model, queue, now);
    const why = queue.blocked(ticket.band, fullness, now);
    const kind = queue.enter(ticket, fullness, now);
    if (kind === "let_in") return { kind };
    if (kind === "waits") return { kind, why };
    return {
      kind,
      waiting: queue.waiting(ticket.band).requests,
      estimateMs: queue.estimateMs(ticket.band, now),
    };
  }

  /** Lets in whoever has room now, in order. */
  pump(model: string, now: number): readonly Ticket[] {
    const queue = this.#queues.get(model);
    if (queue === undefined || queue.size === 0) return [];
    const letIn: Ticket[] = [];
    for (;;) {
      const ticket = queue.next(this.#fullness(model, queue, now), now);
      if (ticket === undefined) return letIn;
      letIn.push(ticket);
    }
  }

  /** One that waits does not want to any more. False when it does not wait. */
  leave(model: string, ticket: Ticket): boolean {
    return this.#queues.get(model)?.leave(ticket) ?? false;
  }

  /** One that was let in has ended, and cost so many tokens, if that is known. */
  end(model: string, ticket: Ticket, { tokens, now }: { tokens: number | undefined; now: number }) {
    this.#queues.get(model)?.end(ticket, tokens, now);
  }

  /** How long a request would wait that came now, in ms; undefined when nothing says so. */
  estimateMs(model: string, band: Band, now: number): number | undefined {
    return this.#queues.get(model)?.estimateMs(band, now);
  }

  /** Something changed that no ticket tells: the replicas, or what they say. */
  lookAgain(): void {
    this.#looks.clear();
  }

  /** Models in which requests wait. */
  get waitingModels(): readonly string[] {
    return [...this.#queues].filter(([, queue]) => queue.size > 0).map(([model]) => model);
  }

  /** What waits, by model and band; only where something does. */
  waiting(): readonly WaitingCount[] {
    return [...this.#queues].flatMap(([model, queue]) =>
      queue.counts().map((count) => ({ model, ...count }))
    );
  }

  /** How full each model is that has had requests, at `now`. */
  saturations(now: number): readonly { readonly model: string; readonly saturation: number }[] {
    return [...this.#queues].map(([model, queue]) => ({
      model,
      saturation: this.#fullness(model, queue, now).saturation,
    }));
  }

  /** Forgets models that are gone and owe nothing. */
  prune(exists: (model: string) => boolean): void {
    for (const [model, queue] of this.#queues) {
      if (queue.idle && !exists(model)) this.#queues.delete(model);
    }
  }

  #queue(model: string, now: number): ModelQueue {
    const known = this.#queues.get(model);
    if (known !== undefined) return known;
    const queue = new ModelQueue(this.#options.bounds, now);
    this.#queues.set(model, queue);
    return queue;
  }

  #fullness(model: string, queue: ModelQueue, now: number): Fullness {
    let look = this.#looks.get(model);
    if (look === undefined || now - look.at > LOOK_MS_MAX) {
      look = { fullness: this.#options.fullness(model), at: now };
      this.#looks.set(model, look);
    }
    const { saturation, capacity, own } = look.fullness;
    // Who was let in is not at a replica yet at once, and who ended since the look is there no more.
    const since = capacity === 0 ? 0 : (queue.inFlight - own) / capacity;
    return { saturation: Math.max(0, saturation + since), capacity };
  }
}
