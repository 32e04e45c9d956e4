/**
 * What is kept of requests: each record as it came, and sums by hour, key and model. Both, and what
 * has been spent of budgets, are written together, so that the sums are those of the records.
 */

/** One client request, as far as sums go. */
export interface UsageEntry {
  /** Makes it count once. */
  readonly id: string;
  /** When it ended, by control's clock. */
  readonly at: number;
  /** The record itself, encoded. */
  readonly record: Uint8Array<ArrayBuffer>;
  readonly hour: number;
  readonly key: string;
  readonly project: string;
  readonly model: string;
  /** Of the replica that answered; empty when it is not known. */
  readonly pool: string;
  readonly sums: Sums;
  /** What it was charged to, and the day and month that it counts in; see periods.ts. */
  readonly scopes: readonly string[];
  readonly periods: readonly string[];
}

/** The columns that are added up. Whole numbers. */
export const SUMS = [
  "requests",
  "failures",
  "promptTokens",
  "completionTokens",
  "cachedTokens",
  "reasoningTokens",
  "estimated",
  "costMicro",
  "durationMs",
  "wastedTokens",
] as const;
export type Sums = Readonly<Record<(typeof SUMS)[number], number>>;

/**
 * Sums of one key and model in one hour, and of one pool where that is told apart; else `pool` is
 * empty. `hour` is its beginning in ms since 1970.
 */
export interface UsageHour {
  readonly hour: number;
  readonly key: string;
  readonly project: string;
  readonly model: string;
  readonly pool: string;
  readonly sums: Sums;
}

/** What a scope has spent in a period, or spent more than before. */
export interface Spent {
  readonly scope: string;
  readonly period: string;
  readonly micro: number;
}

export interface Rollup {
  readonly hours: readonly UsageHour[];
  /** The same, by pool too. */
  readonly pools: readonly UsageHour[];
  readonly spent: readonly Spent[];
}

/** Adds up entries. Pure. */
export function rollUp(entries: readonly UsageEntry[]): Rollup {
  const hours = new Map<string, UsageHour>();
  const pools = new Map<string, UsageHour>();
  const spent = new Map<string, Spent>();
  for (const entry of entries) {
    const { hour, key, project, model, pool, sums } = entry;
    add(hours, { hour, key, project, model, pool: "", sums });
    add(pools, { hour, key, project, model, pool, sums });
    if (sums.costMicro === 0) continue;
    for (const scope of entry.scopes) {
      for (const period of entry.periods) {
        const place = `${scope} ${period}`;
        const micro = (spent.get(place)?.micro ?? 0) + sums.costMicro;
        spent.set(place, { scope, period, micro });
      }
    }
  }
  return {
    hours: [...hours.values()],
    pools: [...pools.values()],
    spent: [...spent.values()],
  };
}

function add(to: Map<string, UsageHour>, more: UsageHour): void {
  const { hour, key, project, model, pool, sums } = more;
  const id = JSON.stringify([hour, key, project, model, pool]);
  const before = to.get(id);
  to.set(id, before === undefined ? more : { ...before, sums: addSums(before.sums, sums) });
}

export function addSums(a: Sums, b: Sums): Sums {
  return {
    requests: a.requests + b.requests,
    failures: a.failures + b.failures,
    promptTokens: a.promptTokens + b.promptTokens,
    completionTokens: a.completionTokens + b.completionTokens,
    cachedTokens: a.cachedTokens + b.cachedTokens,
    reasoningTokens: a.reasoningTokens + b.reasoningTokens,
    estimated: a.estimated + b.estimated,
    costMicro: a.costMicro + b.costMicro,
    durationMs: a.durationMs + b.durationMs,
    wastedTokens: a.wastedTokens + b.wastedTokens,
  };
}

/** What a question about usage tells apart, and what it is about. */
export interface UsageQuestion {
  readonly by: readonly UsageColumn[];
  /** Hours that begin at `from` or later, and before `until`. */
  readonly from: number;
  readonly until: number;
  readonly key?: string;
  /** Of these alone. */
  readonly projects?: readonly string[];
  readonly model?: string;
  readonly limit: number;
}

export type UsageColumn = "hour" | "key" | "project" | "model" | "pool";

/** One row of an answer: what was not told apart is empty, or 0 for the hour. */
export type UsageAnswer = UsageHour;
