/**
 * Takes what routers say was used, writes it down before it answers, and keeps what is spent of
 * budgets in memory. Nothing is counted twice: the store says which records are new.
 */
import { logger } from "@heddle/common/log";
import { errorText, HeddleError } from "@heddle/proto/error";
import type { UsageRecord } from "@heddle/proto/gen/tenancy";
import type { Calendar } from "../../core/usage/periods.ts";
import { rollUp } from "../../core/usage/rollup.ts";
import type { ControlMetrics } from "../control_metrics.ts";
import type { UsageStore } from "../store/store.ts";
import type { Tenants } from "../tenancy/tenants.ts";
import { entryOf } from "./usage_entry.ts";

const log = logger("control", "usage");

/** Records in one call: writing more would hold up everything else. */
const RECORDS_MAX = 1_000;

/** How exactly it is known when a key was used last. */
const USED_MS = 5 * 60_000;

/** How often old records are looked for. */
const PRUNE_MS = 60_000;

export interface LedgerOptions {
  readonly store: Pick<UsageStore, "recordUsage" | "spent" | "prune">;
  readonly tenants: Tenants;
  readonly calendar: Calendar;
  /** As stored. */
  readonly used: ReadonlyMap<string, number>;
  readonly keep: { readonly recordsMs: number; readonly hoursMs: number };
  readonly metrics: Pick<ControlMetrics, "recorded">;
  readonly now: () => number;
}

export class Ledger {
  readonly #options: LedgerOptions;
  readonly #used: Map<string, number>;
  #turn: Promise<unknown> = Promise.resolve();
  /** It is not known what a write that failed has left behind: the store is asked what is spent. */
  #unsure = false;
  #prunedAt: number;

  constructor(options: LedgerOptions) {
    this.#options = options;
    this.#used = new Map(options.used);
    this.#prunedAt = options.now();
  }

  /** When the key was used last, within some minutes; undefined for never. */
  lastUsed(key: string): number | undefined {
    return this.#used.get(key);
  }

  /** Writes records; resolves, once they are on disk, with how many were there already. */
  record(router: string, records: readonly UsageRecord[]): Promise<number> {
    if (records.length > RECORDS_MAX) {
      const text = `Cannot record ${records.length} requests at once: ${RECORDS_MAX} at most`;
      return Promise.reject(new HeddleError("invalid_input", text));
    }
    const turn = this.#turn.then(() => this.#write(router, records));
    this.#turn = turn.catch(() => {});
    return turn;
  }

  async #write(router: string, records: readonly UsageRecord[]): Promise<number> {
    const { store, tenants, calendar, now } = this.#options;
    const at = now();
    const entries = records.map((record) => entryOf(record, { router, calendar, now: at }))
      .filter((entry) => entry !== undefined);
    if (entries.length < records.length) this.#refused(router, records.length - entries.length);
    const used = new Map<string, number>();
    for (const { key, at } of entries) {
      if (at - (this.#used.get(key) ?? -Infinity) > USED_MS) used.set(key, at);
    }
    let fresh: ReadonlySet<string>;
    try {
      if (this.#unsure) await this.#askWhatIsSpent();
      fresh = await store.recordUsage(entries, used);
    } catch (error) {
      this.#unsure = true;
      throw error;
    }
    for (const [key, usedAt] of used) this.#used.set(key, usedAt);
    const news = new Set(fresh);
    // The first of those with one id is the one that was written.
    const { spent } = rollUp(entries.filter(({ id }) => news.delete(id)));
    tenants.budgets.add(spent);
    tenants.spent(new Set(spent.map(({ scope }) => scope)));
    const duplicates = entries.length - fresh.size;
    this.#options.metrics.recorded("new", fresh.size);
    this.#options.metrics.recorded("duplicate", duplicates);
    return duplicates;
  }

  async #askWhatIsSpent(): Promise<void> {
    const { store, tenants, now } = this.#options;
    tenants.budgets.seed(await store.spent(tenants.budgets.periods(now())));
    this.#unsure = false;
  }

  /** To be called every second. Never rejects: what is too old now is so later, too. */
  async tick(): Promise<void> {
    const { store, tenants, keep, now } = this.#options;
    const at = now();
    if (at - this.#prunedAt < PRUNE_MS && at >= this.#prunedAt) return;
    this.#prunedAt = at;
    const [day, month] = tenants.budgets.periods(at);
    try {
      const more = await store.prune({
        recordsFrom: at - keep.recordsMs,
        hoursFrom: at - keep.hoursMs,
        day,
        month,
      });
      if (more) this.#prunedAt = at - PRUNE_MS;
    } catch (error) {
      log.warning("Cannot forget old usage; trying again", { reason: errorText(error) });
    }
  }

  #refused(router: string, count: number): void {
    this.#options.metrics.recorded("refused", count);
    log.warning("Dropped records of usage without an id that could make them count once", {
      router,
      count,
    });
  }
}
