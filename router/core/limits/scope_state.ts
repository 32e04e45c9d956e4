/** What one scope has used of its limits, as far as this router knows. */
import type { Budget, Scope } from "../tenancy/scope.ts";
import { Demand } from "./demand.ts";
import { Meter } from "./meter.ts";
import { Slots } from "./slots.ts";

/** Control's word on a budget may be this much older than what it has confirmed of our records. */
const VIEW_LAG_MS = 250;

/** Limits that routers share. */
export type Dimension = "requests" | "tokens" | "concurrent";

/** How many routers share the limits, as this one knows. */
export type Sharing =
  /** The limits are this router's alone. */
  | { readonly kind: "alone" }
  /** Control says what of them is this router's. */
  | { readonly kind: "shared" };

export class ScopeState {
  #scope: Scope;
  requests: Meter | undefined;
  tokens: Meter | undefined;
  slots: Slots | undefined;
  /** Control has said at least once what is this router's. */
  granted = false;
  readonly asked = { requests: new Demand(), tokens: new Demand() };
  /** When a request last looked at it. */
  usedAt: number;
  /** Requests that wait for a slot right now. */
  waiting = 0;
  /** Reserved of the budget by requests in flight. */
  reservedMicro = 0;
  /** Of its own requests, not yet in control's hands. */
  #unrecordedMicro = 0;
  /** In control's hands, and maybe not yet in what control said last. */
  #recorded: { at: number; micro: number }[] = [];

  constructor(scope: Scope, sharing: Sharing, now: number) {
    this.#scope = scope;
    this.usedAt = now;
    const { requestsPerMinute, tokensPerMinute, concurrentRequests } = scope.limits;
    const alone = sharing.kind === "alone";
    const meter = (limit: number | undefined) =>
      limit === undefined ? undefined : new Meter(limit, now, alone ? limit : 0);
    this.requests = meter(requestsPerMinute);
    this.tokens = meter(tokensPerMinute);
    this.slots = concurrentRequests === undefined
      ? undefined
      : new Slots(concurrentRequests, alone ? concurrentRequests : 0);
  }

  get scope(): Scope {
    return this.#scope;
  }

  /** Takes other limits; what was used stays used. */
  update(scope: Scope, sharing: Sharing, now: number): void {
    const fresh = new ScopeState(scope, sharing, now);
    const { concurrentRequests } = scope.limits;
    this.requests = changed(this.requests, fresh.requests, now);
    this.tokens = changed(this.tokens, fresh.tokens, now);
    if (concurrentRequests === undefined || this.slots === undefined) this.slots = fresh.slots;
    else this.slots.change(concurrentRequests);
    this.#scope = scope;
    this.#seen(now);
  }

  meter(dimension: "requests" | "tokens"): Meter | undefined {
    return dimension === "requests" ? this.requests : this.tokens;
  }

  /** Spent of the budget, own requests that control may not know of included. */
  spentMicro(now: number): number {
    const { budget } = this.#scope;
    if (budget === undefined) return 0;
    // Control says so itself soon; until then a new period begins by this router's own clock.
    const told = now >= budget.refillsAt ? 0 : toldMicro(budget);
    return told + this.#unrecordedMicro +
      this.#recorded.reduce((sum, { micro }) => sum + micro, 0);
  }

  /** A request of this router's has cost so much. */
  charge(micro: number): void {
    this.#unrecordedMicro += micro;
  }

  /** Control has it on disk. */
  recorded(micro: number, now: number): void {
    this.#unrecordedMicro = Math.max(0, this.#unrecordedMicro - micro);
    this.#recorded.push({ at: now, micro });
  }

  /** Control said what is left of the budget over all routers. */
  remaining(micro: number, now: number): void {
    const { budget } = this.#scope;
    if (budget === undefined) return;
    const spentMicro = budget.limitMicro - micro;
    this.#scope = { ...this.#scope, budget: { ...budget, spentMicro, exhausted: micro <= 0 } };
    this.#seen(now);
  }

  /** Nothing is used or owed: it can be forgotten and made again. */
  idle(now: number): boolean {
    return (this.slots?.used ?? 0) === 0 && this.reservedMicro === 0 &&
      this.#unrecordedMicro === 0 && this.#recorded.length === 0 &&
      (this.requests?.idle(now) ?? true) && (this.tokens?.idle(now) ?? true);
  }

  #seen(now: number): void {
    this.#recorded = this.#recorded.filter(({ at }) => at > now - VIEW_LAG_MS);
  }
}

function toldMicro({ spentMicro, exhausted, limitMicro }: Budget): number {
  return exhausted ? Math.max(spentMicro, limitMicro) : spentMicro;
}

function changed(
  meter: Meter | undefined,
  fresh: Meter | undefined,
  now: number,
): Meter | undefined {
  if (fresh === undefined || meter === undefined) return fresh;
  if (meter.limit !== fresh.limit) meter.change(fresh.limit, now);
  return meter;
}
