/**
 * What scopes have spent in the day and month that is now, in memory: a budget is enforced without
 * asking the store, and begins with what the store has, so that a restart resets nothing.
 */
import type { Period, StoredLimits } from "../tenancy/stored.ts";
import type { Calendar } from "./periods.ts";
import type { Spent } from "./rollup.ts";

/** How a budget stands: what was spent in its period, and when the next begins. */
export interface BudgetStanding {
  readonly spentMicro: number;
  readonly exhausted: boolean;
  readonly refillMs: number;
}

export class Budgets {
  readonly #calendar: Calendar;
  /** By period, then by scope, in millionths of a unit. Only the periods that are now. */
  #spent = new Map<string, Map<string, number>>();
  /** When the periods that are now end; kept, since it takes a while to find. */
  readonly #ends = new Map<string, number>();

  constructor(calendar: Calendar) {
    this.#calendar = calendar;
  }

  /** The periods that count now, for the store's `spent`. */
  periods(now: number): readonly [day: string, month: string] {
    const { day, month } = this.#calendar.periods(now);
    return [day, month];
  }

  /** Begins anew with what the store has of the periods that are now. */
  seed(spent: readonly Spent[]): void {
    this.#spent = new Map();
    this.add(spent);
  }

  /** What was recorded since. */
  add(spent: readonly Spent[]): void {
    for (const { scope, period, micro } of spent) {
      const inPeriod = this.#spent.get(period) ?? new Map<string, number>();
      this.#spent.set(period, inPeriod);
      inPeriod.set(scope, (inPeriod.get(scope) ?? 0) + micro);
    }
  }

  spent(scope: string, period: Period, now: number): number {
    const [day, month] = this.periods(now);
    return this.#spent.get(period === "day" ? day : month)?.get(scope) ?? 0;
  }

  /** How the budget of a scope with these limits stands; undefined when they have none. */
  standing(
    scope: string,
    limits: StoredLimits | undefined,
    now: number,
  ): BudgetStanding | undefined {
    const { budgetMicro, budgetPeriod } = limits ?? {};
    if (budgetMicro === undefined || budgetPeriod === undefined) return undefined;
    const spentMicro = this.spent(scope, budgetPeriod, now);
    return {
      spentMicro,
      exhausted: spentMicro >= budgetMicro,
      refillMs: this.endOf(budgetPeriod, now) - now,
    };
  }

  /** When the period that is now ends. */
  endOf(period: Period, now: number): number {
    const name = this.#calendar.periods(now)[period];
    const end = this.#ends.get(name) ?? this.#calendar.endOf(period, now);
    this.#ends.set(name, end);
    return end;
  }

  /**
   * Drops periods that are over. True when there were any: then budgets are full again. What seems to
   * be to come stays: a clock that was set back for a while must not make anybody's budget anew.
   */
  forget(now: number): boolean {
    const [day, month] = this.periods(now);
    const isOver = (name: string) => name < (name.startsWith("d") ? day : month);
    const over = [...this.#spent.keys(), ...this.#ends.keys()].filter(isOver);
    for (const name of over) {
      this.#spent.delete(name);
      this.#ends.delete(name);
    }
    return over.length > 0;
  }
}
