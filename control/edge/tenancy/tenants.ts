/**
 * The one owner of who may use what: keeps it in memory as the store has it, changes it in the order
 * in which changes come, each stored before it takes effect, and tells routers what became of it.
 */
import { logger } from "@heddle/common/log";
import { HeddleError } from "@heddle/proto/error";
import type { Key, ModelPrice, Scope } from "@heddle/proto/gen/tenancy";
import { chainOf, exists } from "../../core/tenancy/chain.ts";
import type { Change } from "../../core/tenancy/change.ts";
import {
  applyRecord,
  emptyTenancy,
  type StoredKey,
  type Tenancy,
  type TenancyRecord,
} from "../../core/tenancy/stored.ts";
import type { Budgets } from "../../core/usage/budgets.ts";
import type { StoreRecord } from "../../core/store_record.ts";
import type { TenancyChange } from "../watch/tenancy_feed.ts";
import { wireKey, wirePrice, wireScope } from "./wire.ts";

const log = logger("control", "tenancy");

/** How often routers are told again how a budget that changes stands. */
const BUDGET_SAID_MS = 10_000;

export interface TenantsOptions {
  /** As stored. */
  readonly records: readonly TenancyRecord[];
  readonly budgets: Budgets;
  /** Stores what must survive before it takes effect. */
  readonly persist: (records: readonly StoreRecord[]) => Promise<void>;
  readonly publish: (change: TenancyChange) => void;
  /** The time on the wall: keys expire and budgets refill by it. */
  readonly now: () => number;
}

export class Tenants {
  /** Read by everyone, changed here alone. */
  readonly tenancy: Tenancy = emptyTenancy();
  readonly budgets: Budgets;
  readonly #options: TenantsOptions;
  /** Ends when the changes that were begun so far have ended. Never rejects. */
  #turn: Promise<unknown> = Promise.resolve();
  #nextExpiry = Infinity;
  /** Scopes with a budget of which something was spent that routers were not told. */
  readonly #spending = new Set<string>();
  /** Scopes of which routers were told that the budget is used up. */
  readonly #exhausted = new Set<string>();
  #saidAt: number;

  constructor(options: TenantsOptions) {
    this.#options = options;
    this.budgets = options.budgets;
    this.#saidAt = options.now();
    for (const record of options.records) applyRecord(this.tenancy, record);
    this.#findNextExpiry();
  }

  /** Ids of everything that routers may have to know. */
  get everything(): TenancyChange {
    const { keys, limits, prices } = this.tenancy;
    const live = [...keys].filter(([, key]) => key.revokedAt === undefined).map(([id]) => id);
    return { keys: live, scopes: limits.keys(), prices: prices.keys() };
  }

  /** A key as routers should have it now; undefined for one that they must not let in. */
  key(id: string): Key | undefined {
    return wireKey(this.tenancy, id, this.#options.now());
  }

  price(model: string): ModelPrice | undefined {
    const price = this.tenancy.prices.get(model);
    return price === undefined ? undefined : wirePrice(model, price);
  }

  /**
   * Makes a change of what there is when its turn comes, and gives what `make` gave. Rejects with
   * what `make` throws, or what the store does; then nothing has changed.
   */
  change<T extends Change>(make: (tenancy: Tenancy, now: number) => T): Promise<T> {
    const turn = this.#turn.then(async () => {
      const change = make(this.tenancy, this.#options.now());
      await this.#options.persist([...change.records, change.audit]);
      this.#take(change.records);
      return change;
    });
    this.#turn = turn.catch(() => {});
    return turn;
  }

  /** Some was spent: routers are told when a budget is used up by it, and otherwise in a while. */
  spent(scopes: Iterable<string>): void {
    const now = this.#options.now();
    const over: string[] = [];
    for (const scope of scopes) {
      const limits = this.tenancy.limits.get(scope);
      if (limits?.budgetMicro === undefined) continue;
      const standing = this.budgets.standing(scope, limits, now);
      if (standing?.exhausted === true && !this.#exhausted.has(scope)) {
        this.#exhausted.add(scope);
        over.push(scope);
      } else this.#spending.add(scope);
    }
    this.#publishScopes(over);
  }

  /** To be called every second: takes back what has expired, and says how budgets stand. */
  tick(): void {
    const now = this.#options.now();
    if (now >= this.#nextExpiry) this.#expire(now);
    if (this.budgets.forget(now)) {
      this.#spending.clear();
      this.#exhausted.clear();
      this.#saidAt = now;
      this.#publishScopes(this.#budgeted());
    } else if (now - this.#saidAt >= BUDGET_SAID_MS || now < this.#saidAt) {
      this.#saidAt = now;
      const scopes = [...this.#spending];
      this.#spending.clear();
      this.#publishScopes(scopes);
    }
  }

  /** How the budget of this scope stands, if it has one. */
  standing(scope: string) {
    return this.budgets.standing(scope, this.tenancy.limits.get(scope), this.#options.now());
  }

  /** A scope as routers should have it now. */
  scope(id: string): Scope | undefined {
    return exists(this.tenancy, this.tenancy.keys.get(id)?.project ?? id)
      ? wireScope(this.tenancy, id, this.standing(id))
      : undefined;
  }

  #take(records: readonly TenancyRecord[]): void {
    const keys = new Set<string>();
    const scopes = new Set<string>();
    const prices = new Set<string>();
    const holders = new Set<string>();
    for (const record of records) {
      const modelsBefore = this.tenancy.limits.get(record.id)?.models;
      applyRecord(this.tenancy, record);
      if (record.kind === "price") {
        prices.add(record.id);
        continue;
      }
      scopes.add(record.id);
      if (record.kind === "key") keys.add(record.id);
      const models = this.tenancy.limits.get(record.id)?.models;
      // What keys inherit.
      if (record.kind === "scope" || String(models) !== String(modelsBefore)) {
        holders.add(record.id);
      }
      if (record.kind === "limits") this.#exhausted.delete(record.id);
    }
    for (const id of this.#keysIn(holders)) keys.add(id);
    this.#findNextExpiry(records);
    this.#publish({ keys, scopes, prices });
  }

  #keysIn(holders: ReadonlySet<string>): readonly string[] {
    if (holders.size === 0) return [];
    return [...this.tenancy.keys.keys()].filter((id) =>
      chainOf(this.tenancy, id).some((link) => holders.has(link.id))
    );
  }

  #expire(now: number): void {
    const expired = [...this.tenancy.keys].filter(([, key]) =>
      key.secrets.some(({ expiresAt = Infinity }) => expiresAt <= now)
    ).map(([id]) => id);
    this.#nextExpiry = Infinity;
    this.#findNextExpiry();
    this.#publish({ keys: expired, scopes: [], prices: [] });
  }

  #findNextExpiry(records?: readonly TenancyRecord[]): void {
    const now = this.#options.now();
    const next = (key: StoredKey | undefined) => {
      for (const { expiresAt = Infinity } of key?.secrets ?? []) {
        if (expiresAt > now && expiresAt < this.#nextExpiry) this.#nextExpiry = expiresAt;
      }
    };
    if (records === undefined) { for (const key of this.tenancy.keys.values()) next(key); }
    else for (const record of records) if (record.kind === "key") next(record.value);
  }

  #budgeted(): string[] {
    return [...this.tenancy.limits].filter(([, { budgetMicro }]) => budgetMicro !== undefined)
      .map(([id]) => id);
  }

  #publishScopes(scopes: readonly string[]): void {
    if (scopes.length === 0) return;
    this.#publish({ keys: [], scopes, prices: [] });
  }

  #publish(change: TenancyChange): void {
    try {
      this.#options.publish(change);
    } catch (error) {
      // What is stored holds; routers that missed it have it with their next snapshot.
      log.error("Cannot tell routers what changed", { error });
      if (!(error instanceof HeddleError)) throw error;
    }
  }
}
