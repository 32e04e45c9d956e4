/**
 * Asks control for this router's shares: every second, at once for requests that wait, and at once
 * when control wants back what others need. Requests that wait are let go after a tenth of a second,
 * whatever control does; only its first word on a limit is waited for longer.
 */
import { ShareDimension, type ShareGrant } from "@heddle/proto/gen/router";
import { fromRpc } from "@heddle/proto/error_code";
import { logger } from "@heddle/common/log";
import { delay } from "@heddle/common/task";
import type { Limiter, Shortage } from "../../core/limits/limiter.ts";
import type { Dimension } from "../../core/limits/scope_state.ts";
import {
  type Demanded,
  demandsOf,
  type Granted,
  missingKey,
  standAlone,
  takeGrants,
} from "../../core/limits/shares.ts";
import type { ControlRpc } from "../control/control_client.ts";

const INTERVAL_MS = 1_000;
/** Longest wait of a request for a share. */
const WAIT_MS = 100;
/**
 * Longest wait for control's first word on a limit. Until then nobody knows what other routers have of
 * it: whoever went on alone after a tenth of a second could let in all of it beside them.
 */
const FIRST_WORD_MS = 1_000;
/** An answer that takes longer is of no use to anyone; control takes 90 ms at most. */
const CALL_MS_MAX = 1_000;
/** One for requests that wait already, one for those that came since. */
const CALLS_MAX = 2;
/** Lost calls that control is told of, the newest: beyond that it has long forgotten this router. */
const LOST_MAX = 64;

export interface ShareClientOptions {
  readonly name: string;
  readonly instance: string;
  readonly shareWaitMs?: number | undefined;
  readonly firstShareWaitMs?: number | undefined;
  readonly limiter: Limiter;
  readonly rpc: () => ControlRpc | undefined;
  /** Milliseconds, monotonic. */
  readonly now: () => number;
}

export class ShareClient {
  readonly #options: ShareClientOptions;
  readonly #log = logger("router", "limits");
  readonly #missing = new Map<string, number>();
  readonly #recalled = new Set<string>();
  #waiters: (() => void)[] = [];
  /** Calls whose answers have not come. */
  readonly #inFlight = new Set<number>();
  /** Calls whose answers will not be taken, as long as control may not know. */
  readonly #lost = new Set<number>();
  /** What lost calls gave back, by scope and dimension (`missingKey`). */
  readonly #unreturned = new Map<string, number>();
  #lastCall = 0;
  #due = false;
  #routers = 1;

  constructor(options: ShareClientOptions) {
    this.#options = options;
  }

  /** Routers that share the limits, as control last said. */
  get routers(): number {
    return this.#routers;
  }

  /** Asks every second until `stop` aborts. */
  async run(stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      await delay(INTERVAL_MS, stop);
      if (stop.aborted) return;
      this.#options.limiter.sweep(this.#options.now());
      await this.#call();
    }
  }

  /** Control wants back what is not needed of these scopes. */
  recall(scopeIds: readonly string[]): void {
    for (const id of scopeIds) this.#recalled.add(id);
    this.#soon();
  }

  /** Whether asking control could help against what is missing. */
  helps(shortages: readonly Shortage[]): boolean {
    return this.#options.limiter.sharing.kind === "shared" &&
      shortages.every(({ missing, limit }) => missing > 0 && limit !== "budget");
  }

  /**
   * Asks for what is missing, and resolves once there is an answer, or after 100 ms; after a second
   * where control never said anything of a limit.
   */
  async obtain(shortages: readonly Shortage[], gone: AbortSignal): Promise<void> {
    if (this.#options.rpc() === undefined) return this.#alone(shortages);
    for (const { state, limit, missing } of shortages) {
      const key = missingKey(state.scope.id, DIMENSION_OF[limit] ?? "requests");
      this.#missing.set(key, (this.#missing.get(key) ?? 0) + missing);
    }
    const concurrent = shortages.filter(({ limit }) => limit === "concurrent_requests");
    for (const { state } of concurrent) state.waiting++;
    try {
      await this.#answered(gone, this.#patience(shortages));
    } finally {
      for (const { state } of concurrent) state.waiting--;
    }
    this.#alone(shortages);
  }

  /** What control never said anything of is not refused for want of its word. */
  #alone(shortages: readonly Shortage[]): void {
    standAlone(shortages.map(({ state }) => state), this.#routers, this.#options.now());
  }

  #patience(shortages: readonly Shortage[]): number {
    const { shareWaitMs = WAIT_MS, firstShareWaitMs = FIRST_WORD_MS } = this.#options;
    return shortages.every(({ state }) => state.granted) ? shareWaitMs : firstShareWaitMs;
  }

  #answered(gone: AbortSignal, waitMs: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        gone.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, waitMs);
      gone.addEventListener("abort", done);
      this.#waiters.push(done);
      this.#soon();
    });
  }

  /** Calls in this turn's end, so that all who miss something now are in one call. */
  #soon(): void {
    if (this.#due) return;
    this.#due = true;
    queueMicrotask(() => {
      this.#due = false;
      if (this.#inFlight.size < CALLS_MAX) void this.#call();
    });
  }

  /** What is held and wanted now, with what was given back in vain. */
  #demands(): readonly Demanded[] {
    const { limiter, now } = this.#options;
    const demands = demandsOf(
      limiter.states.values(),
      { recalled: new Set(this.#recalled), missing: new Map(this.#missing) },
      now(),
    );
    this.#recalled.clear();
    this.#missing.clear();
    const vain = new Map(this.#unreturned);
    this.#unreturned.clear();
    return demands.map((demand) => {
      const again = vain.get(missingKey(demand.scopeId, demand.dimension)) ?? 0;
      return { ...demand, returned: demand.returned + again };
    });
  }

  /** Control is told with the next call, so that what it granted in this one is not taken for used. */
  #lose(call: number, demands: readonly Demanded[]): void {
    this.#lost.add(call);
    for (const id of [...this.#lost].slice(0, -LOST_MAX)) this.#lost.delete(id);
    for (const { scopeId, dimension, returned } of demands) {
      if (returned <= 0) continue;
      const key = missingKey(scopeId, dimension);
      this.#unreturned.set(key, (this.#unreturned.get(key) ?? 0) + returned);
    }
  }

  /** Never rejects. */
  async #call(): Promise<void> {
    const { rpc, limiter, now, name, instance } = this.#options;
    const control = rpc();
    if (control === undefined || this.#inFlight.size >= CALLS_MAX) return;
    const waiters = this.#waiters.splice(0);
    const demands = this.#demands();
    const call = ++this.#lastCall;
    const [inFlight, lost] = [[...this.#inFlight], [...this.#lost]];
    this.#inFlight.add(call);
    try {
      const answer = await control.share({
        router: name,
        routerInstance: instance,
        demands: demands.map(encodeDemand),
        call: BigInt(call),
        inFlight: inFlight.map(BigInt),
        lost: lost.map(BigInt),
      }, { timeoutMs: CALL_MS_MAX });
      for (const id of lost) this.#lost.delete(id);
      this.#routers = Math.max(1, answer.routers);
      takeGrants(limiter, answer.grants.flatMap(decodeGrant), now());
    } catch (error) {
      this.#lose(call, demands);
      this.#log.warning(fromRpc(error, "Cannot ask control for shares of limits").message);
    } finally {
      this.#inFlight.delete(call);
    }
    for (const wake of waiters) wake();
    if (this.#waiters.length > 0 || this.#recalled.size > 0) this.#soon();
  }
}

const DIMENSION_OF: Readonly<Partial<Record<Shortage["limit"], Dimension>>> = {
  concurrent_requests: "concurrent",
  requests_per_minute: "requests",
  tokens_per_minute: "tokens",
};

const DIMENSIONS: Readonly<Record<Dimension, ShareDimension>> = {
  requests: ShareDimension.REQUESTS,
  tokens: ShareDimension.TOKENS,
  concurrent: ShareDimension.CONCURRENT,
};

function encodeDemand({ dimension, ...demand }: Demanded) {
  return { ...demand, dimension: DIMENSIONS[dimension] };
}

function decodeGrant(grant: ShareGrant): Granted[] {
  const dimension = DIMENSION_NAMES.find((name) => DIMENSIONS[name] === grant.dimension);
  if (dimension === undefined) return [];
  const { scopeId, share, credit, roomInMs, budgetRemainingMicro } = grant;
  return [{
    scopeId,
    dimension,
    share,
    credit,
    roomInMs,
    budgetRemainingMicro: budgetRemainingMicro === undefined
      ? undefined
      : Number(budgetRemainingMicro),
  }];
}

const DIMENSION_NAMES = ["requests", "tokens", "concurrent"] as const;
