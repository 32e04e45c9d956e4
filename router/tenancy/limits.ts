/** The stage that holds a request against its key's limits, from its admission to its end. */
import type { Model } from "../core/fleet/endpoint.ts";
import type { Ask, Lease, Limiter, Shortage } from "../core/limits/limiter.ts";
import { refusalOf } from "../core/limits/limit_refusal.ts";
import { rateHeaders } from "../core/limits/rate_headers.ts";
import type { Caller } from "../core/request/caller.ts";
import { CLIENT_CLOSED, next, type Outcome, refuse, type Step } from "../core/request/outcome.ts";
import type { ParsedRequest } from "../core/request/request.ts";
import { mayUseModel } from "../core/tenancy/key.ts";
import { costMicro, isFree, type Price } from "../core/tenancy/price.ts";
import type { Resolved } from "../core/schedule/resolve.ts";
import type { Usage } from "../core/usage.ts";

/** Who can be asked for what other routers have to spare. */
export interface Shares {
  helps(shortages: readonly Shortage[]): boolean;
  obtain(shortages: readonly Shortage[], gone: AbortSignal): Promise<void>;
}

export interface LimitsOptions {
  readonly limiter: Limiter;
  readonly price: (model: string) => Price;
  /** Undefined for a router without control. */
  readonly shares: Shares | undefined;
  /** Milliseconds, monotonic. */
  readonly now: () => number;
}

/** A request that wants in. */
export interface Asking {
  readonly caller: Caller;
  readonly request: ParsedRequest;
  /** The model that it asks for. */
  readonly model: Model;
}

/** What an engine did for a request. */
export interface Served {
  readonly model: string;
  readonly usage: Usage;
  readonly estimated: boolean;
  readonly engineMs: number;
  readonly gpus: number;
}

/** What a request holds of the limits. Disposing it gives back what was not used, once. */
export interface Reservation extends Disposable {
  /**
   * Holds the request against the limits again for a model that is to take over. Undefined: it may
   * use it.
   */
  moveTo(model: Model): Outcome | undefined;
  /** Puts what was used in the place of what was reserved, and returns what it costs. */
  settle(served: Served): number;
}

export class Limits {
  readonly #options: LimitsOptions;
  #leases = 0;

  constructor(options: LimitsOptions) {
    this.#options = options;
  }

  /** The headers that every answer to this caller has. */
  headers({ key }: Caller): Readonly<Record<string, string>> {
    if (key === undefined) return {};
    const now = this.#options.now();
    return rateHeaders(this.#options.limiter.chain(key, now), now);
  }

  /** Reserves for a request, or says which limit it does not fit under. Waits 100 ms at most, and 1 s for the first word on a limit. */
  async reserve(asking: Asking, gone: AbortSignal): Promise<Step<Reservation>> {
    const { limiter, shares, now } = this.#options;
    const { key } = asking.caller;
    if (key === undefined) return next(this.#reservation(asking, undefined));
    const ask: Ask = { leaseId: String(++this.#leases), key, ...this.#wanted(asking) };
    limiter.ask(ask, now());
    let tried = limiter.reserve(ask, now());
    if (tried.kind === "short" && shares?.helps(tried.shortages) === true) {
      await shares.obtain(tried.shortages, gone);
      if (gone.aborted) return CLIENT_CLOSED;
      tried = limiter.reserve(ask, now());
    }
    return tried.kind === "short"
      ? refuse(refusalOf(tried.shortages))
      : next(this.#reservation(asking, tried.lease));
  }

  /** A better estimate of a prompt than its length gives. */
  promptTokens(model: string, { promptTokensEstimate }: ParsedRequest): number {
    return this.#options.limiter.learned.promptTokens(model, promptTokensEstimate);
  }

  #wanted({ caller, request, model }: Asking): Pick<Ask, "tokens" | "costMicro"> {
    const { limiter, price } = this.#options;
    // What only counts tokens takes none, and costs nothing.
    if (!request.route.metered) return { tokens: 0, costMicro: undefined };
    const promptTokens = this.promptTokens(model.name, request);
    const { dialect } = request.route;
    const completionTokens = dialect === undefined || dialect === "events"
      ? 0
      : limiter.learned.answerTokens(caller.id, model.name, request.answerTokensMax);
    const its = price(model.name);
    return {
      tokens: promptTokens + completionTokens,
      costMicro: isFree(its) ? undefined : costMicro(its, {
        usage: { promptTokens, completionTokens },
        engineMs: ENGINE_MS_ESTIMATE,
        gpus: 1,
      }),
    };
  }

  #reservation(asking: Asking, lease: Lease | undefined): Reservation {
    const { now } = this.#options;
    let model = asking.model;
    return {
      moveTo: (other) => {
        if (other === model) return undefined;
        const missing = lease?.exchange(this.#wanted({ ...asking, model: other }), now()) ?? [];
        if (missing.length > 0) return refusalOf(missing);
        model = other;
        return undefined;
      },
      settle: (served) => {
        const cost = this.#learn(asking, served);
        const { promptTokens, completionTokens } = served.usage;
        lease?.end({ tokens: promptTokens + completionTokens, costMicro: cost }, now());
        return cost;
      },
      [Symbol.dispose]: () => lease?.end({ tokens: 0, costMicro: 0 }, now()),
    };
  }

  #learn({ caller, request }: Asking, served: Served): number {
    const { model, usage, estimated } = served;
    const { learned } = this.#options.limiter;
    if (!estimated) {
      learned.answered(caller.id, model, usage.completionTokens);
      learned.prompted(model, request.promptTokensEstimate, usage.promptTokens);
    }
    return costMicro(this.#options.price(model), served);
  }
}

/** What a request is taken to last where GPUs are paid by the second. */
const ENGINE_MS_ESTIMATE = 1_000;

/** Leaves of a name's models those that the caller may use. */
export function allowedModels({ key }: Caller, resolved: Resolved): Step<Resolved> {
  if (key === undefined) return next(resolved);
  const [first, ...fallbacks] = resolved.models;
  if (!mayUseModel(key, first)) {
    return refuse({
      reason: "model_not_allowed",
      message: `The key may not use the model "${resolved.asked.slice(0, 256)}"`,
      param: "model",
    });
  }
  const others = fallbacks.filter((model) => mayUseModel(key, model));
  return next({ ...resolved, models: [first, ...others] });
}
