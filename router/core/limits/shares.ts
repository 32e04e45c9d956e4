/**
 * What this router tells control of the limits that all routers share, and what it makes of the
 * answer. It reports everything that it holds: what it leaves out counts as given back.
 */
import type { Limiter } from "./limiter.ts";
import type { Meter } from "./meter.ts";
import type { Dimension, ScopeState } from "./scope_state.ts";

/** Others are given what this router will not need for so long. */
const KEEP_S = 1;

/** In the limit's unit per minute, or in slots. */
export interface Demanded {
  readonly scopeId: string;
  readonly dimension: Dimension;
  /** What would be admitted if there were no limit. */
  readonly wanted: number;
  /** What it lives by. */
  readonly held: number;
  /** What may be admitted at once, and is kept. */
  readonly credit: number;
  /** What could have been admitted at once, and is given back. */
  readonly returned: number;
  /** What waiting requests need besides. */
  readonly missing: number;
  /** All that was used, of a rate. */
  readonly used?: number;
}

export interface Granted {
  readonly scopeId: string;
  readonly dimension: Dimension;
  readonly share: number;
  readonly credit: number;
  /** Until control will have what was missing. */
  readonly roomInMs: number;
  readonly budgetRemainingMicro: number | undefined;
}

export interface Wants {
  /** Scopes whose spare others need. */
  readonly recalled: ReadonlySet<string>;
  /** What waiting requests miss, by scope and dimension (`missingKey`). */
  readonly missing: ReadonlyMap<string, number>;
}

export function missingKey(scopeId: string, dimension: Dimension): string {
  return `${dimension} ${scopeId}`;
}

/** Says what is held and wanted. What it gives back is gone from here already. */
export function demandsOf(
  states: Iterable<ScopeState>,
  wants: Wants,
  now: number,
): readonly Demanded[] {
  const found: Demanded[] = [];
  for (const state of states) {
    for (const dimension of ["requests", "tokens"] as const) {
      const meter = state.meter(dimension);
      if (meter !== undefined) found.push(rateDemand(state, { dimension, meter }, wants, now));
    }
    const { slots, scope } = state;
    if (slots === undefined) continue;
    const missing = wants.missing.get(missingKey(scope.id, "concurrent")) ?? 0;
    const wanted = slots.used + Math.max(state.waiting, missing);
    // What is wanted back is let go before it is said: only then may another have it at once.
    if (wants.recalled.has(scope.id)) slots.grant(Math.min(slots.share, wanted));
    found.push({
      scopeId: scope.id,
      dimension: "concurrent",
      wanted,
      // What is in use cannot be another's, whatever the share has come to meanwhile.
      held: Math.max(slots.share, slots.used),
      credit: 0,
      returned: 0,
      missing,
    });
  }
  return found;
}

function rateDemand(
  state: ScopeState,
  { dimension, meter }: { dimension: "requests" | "tokens"; meter: Meter },
  { recalled, missing }: Wants,
  now: number,
): Demanded {
  const { id } = state.scope;
  const debt = Math.max(0, -meter.level(now));
  // A debt is paid at the share's rate, so a router that has one still wants a share.
  const asked = state.asked[dimension];
  const lately = asked.perMinute(now);
  const lacking = missing.get(missingKey(id, dimension)) ?? 0;
  // Others wait for what is wanted back: what may be needed again some time is not kept from them.
  const lets = recalled.has(id) && lacking === 0;
  const wanted = (lets ? asked.latest : lately) + debt;
  const returned = lets ? letGo(meter, wanted, now) : 0;
  return {
    scopeId: id,
    dimension,
    wanted,
    held: meter.share,
    credit: Math.max(0, meter.level(now)),
    returned,
    missing: lacking,
    used: meter.used,
  };
}

/** Keeps no more of a rate than is wanted, and of what is saved up no more than for a second. */
function letGo(meter: Meter, wanted: number, now: number): number {
  meter.grant({ share: Math.min(meter.share, wanted), credit: 0 }, now);
  return meter.giveBack(wanted * KEEP_S / 60, now);
}

/** Takes what control grants. Of a scope that has gone meanwhile nothing is taken. */
export function takeGrants(limiter: Limiter, grants: readonly Granted[], now: number): void {
  for (const { scopeId, dimension, budgetRemainingMicro, ...given } of grants) {
    const state = limiter.states.get(scopeId);
    if (state === undefined) continue;
    state.granted = true;
    if (dimension === "concurrent") state.slots?.grant(given.share);
    else state.meter(dimension)?.grant(given, now);
    if (budgetRemainingMicro !== undefined) state.remaining(budgetRemainingMicro, now);
  }
}

/**
 * Lets the scopes that control never said anything of live on an equal part of their limits: it
 * is away, and serving goes on. Those that it has said something of live on that.
 */
export function standAlone(states: Iterable<ScopeState>, routers: number, now: number): void {
  for (const state of states) {
    if (state.granted) continue;
    state.granted = true;
    for (const meter of [state.requests, state.tokens]) {
      const part = (meter?.limit ?? 0) / routers;
      meter?.grant({ share: part, credit: part }, now);
    }
    state.slots?.grant(Math.max(1, Math.floor(state.slots.limit / routers)));
  }
}
