/** What really limits a scope or key: of each kind the most restrictive limit on its chain. */
import { chainOf, type Link } from "./chain.ts";
import type { Period, StoredLimits, Tenancy } from "./stored.ts";

export type LimitName =
  | "requests_per_minute"
  | "tokens_per_minute"
  | "concurrent_requests"
  | "budget"
  | "models";

/** A limit that holds, with the scope or key that has it. */
export type Effective =
  | {
    readonly name: "requests_per_minute" | "tokens_per_minute" | "concurrent_requests";
    readonly value: number;
    readonly from: Link;
  }
  | {
    readonly name: "budget";
    readonly value: number;
    readonly period: Period;
    readonly spent: number;
    readonly from: Link;
  }
  | { readonly name: "models"; readonly models: readonly string[]; readonly from: Link };

const RATES = [
  ["requests_per_minute", "requestsPerMinute"],
  ["tokens_per_minute", "tokensPerMinute"],
  ["concurrent_requests", "concurrentRequests"],
] as const;

/** What has been spent of a scope's budget in its current period, in millionths. */
export type SpentOf = (scope: string, period: Period) => number;

/**
 * The limits of a scope or key. Of budgets it is the one with the least left, of each length of
 * period. Pure; ties go to what is nearer to the organisation.
 */
export function effectiveLimits(
  tenancy: Tenancy,
  id: string,
  spentOf: SpentOf,
): readonly Effective[] {
  const chain = chainOf(tenancy, id);
  const holders = chain.map((from) => ({
    from,
    limits: tenancy.limits.get(from.id) ?? {},
  }));
  const found: Effective[] = [];
  for (const [name, member] of RATES) {
    const lowest = least(holders, ({ limits }) => limits[member]);
    const value = lowest?.limits[member];
    if (lowest !== undefined && value !== undefined) {
      found.push({ name, value, from: lowest.from });
    }
  }
  for (const period of ["day", "month"] as const) {
    const lowest = least(holders, ({ from, limits }) => {
      if (limits.budgetPeriod !== period || limits.budgetMicro === undefined) return undefined;
      return limits.budgetMicro - spentOf(from.id, period);
    });
    const value = lowest?.limits.budgetMicro;
    if (lowest === undefined || value === undefined) continue;
    const spent = spentOf(lowest.from.id, period);
    found.push({ name: "budget", value, period, spent, from: lowest.from });
  }
  const models = allowedModels(tenancy, chain);
  if (models !== undefined) found.push({ name: "models", ...models });
  return found;
}

interface Holder {
  readonly from: Link;
  readonly limits: StoredLimits;
}

function least(
  holders: readonly Holder[],
  amount: (holder: Holder) => number | undefined,
): Holder | undefined {
  let best: Holder | undefined;
  let lowest = Infinity;
  for (const holder of holders) {
    const value = amount(holder);
    if (value === undefined || value >= lowest) continue;
    [best, lowest] = [holder, value];
  }
  return best;
}

/**
 * The models that everything on the chain allows, with the lowest part of the chain that says
 * something; undefined when nothing does.
 */
export function allowedModels(
  tenancy: Tenancy,
  chain: readonly Link[],
): { readonly models: readonly string[]; readonly from: Link } | undefined {
  let allowed: { readonly models: readonly string[]; readonly from: Link } | undefined;
  for (const from of chain) {
    const own = from.kind === "key" ? tenancy.keys.get(from.id)?.models : undefined;
    for (const list of [tenancy.limits.get(from.id)?.models, own]) {
      if (list === undefined) continue;
      const before = allowed?.models;
      const models = before === undefined ? list : list.filter((name) => before.includes(name));
      allowed = { models, from };
    }
  }
  return allowed;
}
