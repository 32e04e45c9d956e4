/**
 * Checks a request against every limit on its key's chain, and only when all of them let it pass
 * takes from any. What it took is a lease, which ends once, however the request does.
 */
import type { TenantKey } from "../tenancy/key.ts";
import type { Scope } from "../tenancy/scope.ts";
import { Learned } from "./learned.ts";
import type { LimitDetail } from "./limit_detail.ts";
import type { Taken } from "./meter.ts";
import { ScopeState, type Sharing } from "./scope_state.ts";

/** What a request wants of the limits. */
export interface Ask {
  /** Names its slots. */
  readonly leaseId: string;
  readonly key: TenantKey;
  /** Of prompt and answer together, estimated. */
  readonly tokens: number;
  /** What it may cost; undefined: nothing, whatever is left of a budget. */
  readonly costMicro: number | undefined;
}

export type LimitName = LimitDetail["name"];

/** A limit that a request does not fit under. */
export interface Shortage {
  readonly limit: LimitName;
  readonly state: ScopeState;
  /** Until it may fit; of slots nobody knows. */
  readonly waitMs: number | undefined;
  /** Other routers may have what is missing here. */
  readonly missing: number;
}

export type Tried =
  | { readonly kind: "reserved"; readonly lease: Lease }
  /** In the order of the chain; at least one. */
  | { readonly kind: "short"; readonly shortages: readonly Shortage[] };

/** What a request turned out to have used. */
export interface Used {
  readonly tokens: number;
  readonly costMicro: number;
}

/** How long a scope is kept that nobody asks for; its shares are given back after that. */
const UNUSED_MS = 60_000;

interface Held {
  readonly state: ScopeState;
  readonly tokens: { taken: Taken; units: number } | undefined;
  readonly reservedMicro: number;
}

export class Limiter {
  readonly learned = new Learned();
  readonly #scope: (id: string) => Scope | undefined;
  readonly #states = new Map<string, ScopeState>();
  #reservedTokens = 0;
  #sharing: Sharing = { kind: "alone" };

  /** `scope` gives the limits in force; a scope that it does not know limits nothing. */
  constructor(scope: (id: string) => Scope | undefined) {
    this.#scope = scope;
  }

  get sharing(): Sharing {
    return this.#sharing;
  }

  /** Says for scopes that come into use from now on whose limits they have. */
  share(sharing: Sharing): void {
    this.#sharing = sharing;
  }

  /** Tokens that requests in flight have reserved. */
  get reservedTokens(): number {
    return this.#reservedTokens;
  }

  /** Scopes in use. */
  get states(): ReadonlyMap<string, ScopeState> {
    return this.#states;
  }

  /** A scope in use, made when it comes into use; undefined when it limits nothing. */
  state(id: string, now: number): ScopeState | undefined {
    const known = this.#states.get(id);
    if (known !== undefined) return known;
    const scope = this.#scope(id);
    if (scope === undefined) return undefined;
    const state = new ScopeState(scope, this.#sharing, now);
    this.#states.set(id, state);
    return state;
  }

  /** The scopes of a key that limit anything, outermost first. */
  chain(key: TenantKey, now: number): readonly ScopeState[] {
    const found: ScopeState[] = [];
    for (const id of key.scopeIds) {
      const state = this.state(id, now);
      if (state === undefined) continue;
      state.usedAt = now;
      found.push(state);
    }
    return found;
  }

  /** Counts what is asked for; once for each request, however often it is tried. */
  ask({ key, tokens }: Ask, now: number): void {
    for (const { asked, requests, tokens: meter } of this.chain(key, now)) {
      if (requests !== undefined) asked.requests.ask(1);
      if (meter !== undefined) asked.tokens.ask(meter.capped(tokens));
    }
  }

  /** Takes what is asked for, or nothing and says what is missing. */
  reserve(ask: Ask, now: number): Tried {
    const chain = this.chain(ask.key, now);
    const shortages = chain.flatMap((state) => shortagesOf(state, ask, now));
    if (shortages.length > 0) return { kind: "short", shortages };
    const count = (tokens: number) => this.#reservedTokens += tokens;
    return { kind: "reserved", lease: new Lease(ask, { chain, count }, now) };
  }

  /** Takes other limits of a scope, also of one in use. */
  changed(id: string, now: number): void {
    const state = this.#states.get(id);
    if (state === undefined) return;
    const scope = this.#scope(id);
    // Leases that are out still end at the state they have.
    if (scope === undefined) this.#states.delete(id);
    else state.update(scope, this.#sharing, now);
  }

  /** Forgets what nobody has used for a while, so that keys that come and go take no room. */
  sweep(now: number): void {
    for (const [id, state] of this.#states) {
      // A request may wait for a share of it although nothing is taken yet.
      if (now - state.usedAt >= UNUSED_MS && state.idle(now)) this.#states.delete(id);
    }
  }
}

/** What one request has taken of the limits, until it ends. */
export class Lease {
  readonly #id: string;
  readonly #count: (tokens: number) => void;
  #held: readonly Held[];
  #ended = false;

  constructor(
    { leaseId, tokens, costMicro }: Ask,
    { chain, count }: { chain: readonly ScopeState[]; count: (tokens: number) => void },
    now: number,
  ) {
    this.#id = leaseId;
    this.#count = count;
    this.#held = chain.map((state) => {
      state.requests?.take(1, now);
      state.slots?.take(leaseId);
      return { state, ...takeMore(state, { tokens, costMicro }, now) };
    });
    count(this.#tokens());
  }

  /** What it has reserved, of the limit that gave it least. */
  #tokens(): number {
    const units = this.#held.flatMap(({ tokens }) => tokens === undefined ? [] : [tokens.units]);
    return units.length === 0 ? 0 : Math.min(...units);
  }

  /**
   * Asks for another model's tokens and costs in the place of those that it has, requests and slots
   * being taken already. Takes them and returns nothing, or leaves all as it was and says what is
   * missing.
   */
  exchange(ask: Pick<Ask, "tokens" | "costMicro">, now: number): readonly Shortage[] {
    if (this.#ended) throw new Error("A lease that has ended was to be changed");
    this.#count(-this.#tokens());
    this.#release(0, now);
    const missing = this.#held.flatMap(({ state }) => [
      ...tokensShort(state, ask.tokens, now),
      ...budgetShort(state, ask.costMicro, now),
    ]);
    const wanted = missing.length === 0 ? ask : undefined;
    this.#held = this.#held.map(({ state, tokens, reservedMicro }) => ({
      state,
      ...takeMore(
        state,
        wanted ?? { tokens: tokens?.units ?? 0, costMicro: reservedMicro },
        now,
      ),
    }));
    this.#count(this.#tokens());
    return missing;
  }

  /** Ends it: slots are free, and `used` is in the place of what was reserved. Once. */
  end(used: Used, now: number): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#count(-this.#tokens());
    this.#release(used.tokens, now);
    for (const { state } of this.#held) {
      state.slots?.release(this.#id);
      if (state.scope.budget !== undefined) state.charge(used.costMicro);
    }
  }

  #release(usedTokens: number, now: number): void {
    for (const { state, tokens, reservedMicro } of this.#held) {
      state.reservedMicro -= reservedMicro;
      if (tokens === undefined) continue;
      state.tokens?.settle(tokens.taken, { units: tokens.units, used: usedTokens }, now);
    }
  }
}

function takeMore(
  state: ScopeState,
  { tokens, costMicro }: Pick<Ask, "tokens" | "costMicro">,
  now: number,
): Omit<Held, "state"> {
  const reservedMicro = state.scope.budget === undefined ? 0 : costMicro ?? 0;
  state.reservedMicro += reservedMicro;
  const units = state.tokens?.capped(tokens) ?? 0;
  const taken = state.tokens?.take(units, now);
  return { tokens: taken === undefined ? undefined : { taken, units }, reservedMicro };
}

function shortagesOf(state: ScopeState, ask: Ask, now: number): Shortage[] {
  const found: Shortage[] = [];
  const { slots, requests } = state;
  if (slots !== undefined && slots.left < 1) {
    const missing = slots.used < slots.limit ? 1 : 0;
    found.push({ limit: "concurrent_requests", state, waitMs: undefined, missing });
  }
  const waitMs = requests?.waitMs(1, now) ?? 0;
  if (requests !== undefined && waitMs > 0) {
    const missing = requests.missing(1, now);
    found.push({ limit: "requests_per_minute", state, waitMs, missing });
  }
  return [
    ...found,
    ...tokensShort(state, ask.tokens, now),
    ...budgetShort(state, ask.costMicro, now),
  ];
}

function tokensShort(state: ScopeState, tokens: number, now: number): Shortage[] {
  const { tokens: meter } = state;
  // What only counts tokens takes none, and waits for none.
  if (meter === undefined || tokens === 0) return [];
  const waitMs = meter.waitMs(tokens, now);
  if (waitMs === 0) return [];
  return [{ limit: "tokens_per_minute", state, waitMs, missing: meter.missing(tokens, now) }];
}

function budgetShort(state: ScopeState, micro: number | undefined, now: number): Shortage[] {
  const { budget } = state.scope;
  if (budget === undefined || micro === undefined) return [];
  const spent = state.spentMicro(now);
  // The last request that starts may go beyond it; what is in flight counts as it is estimated.
  if (spent + state.reservedMicro < budget.limitMicro) return [];
  const waitMs = spent < budget.limitMicro ? 0 : Math.max(0, budget.refillsAt - now);
  return [{ limit: "budget", state, waitMs, missing: 0 }];
}
