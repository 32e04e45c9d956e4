/**
 * Keys, limits and prices as control last said, for one look-up each. A snapshot of a hundred
 * thousand keys arrives in chunks: each is taken in beside what is in force, and takes its place at
 * the end. Changes between snapshots edit what is in force.
 */
import type { Caller } from "../request/caller.ts";
import { type Price, PRICE_BY_DEFAULT } from "./price.ts";
import type { Scope } from "./scope.ts";

/** A key with the hashes of its secrets. */
export interface KnownKey {
  readonly id: string;
  readonly caller: Caller;
  readonly secrets: readonly KnownSecret[];
}

export interface KnownSecret {
  /** SHA-256 of the whole key, in hexadecimal. */
  readonly hash: string;
  /** Seconds since 1970 by control's clock; undefined: never. */
  readonly expiresAtS: number | undefined;
}

/** What one message of control changes. */
export interface TenancyUpdate {
  readonly snapshot: boolean;
  readonly snapshotEnd: boolean;
  readonly keys: readonly KnownKey[];
  readonly removedKeys: readonly string[];
  readonly scopes: readonly Scope[];
  readonly removedScopes: readonly string[];
  readonly prices: readonly (readonly [model: string, price: Price])[];
  readonly removedPrices: readonly string[];
}

export interface Found {
  readonly caller: Caller;
  readonly expiresAtS: number | undefined;
}

interface Content {
  readonly found: Map<string, Found>;
  readonly hashes: Map<string, readonly string[]>;
  readonly scopes: Map<string, Scope>;
  readonly prices: Map<string, Price>;
}

export class Book {
  #content = empty();
  #pending: Content | undefined;
  #informed = false;

  /** False until there was a whole snapshot: then no key can be said not to exist. */
  get informed(): boolean {
    return this.#informed;
  }

  /** Keys in force. */
  get keys(): number {
    return this.#content.hashes.size;
  }

  /** The key of this hash; undefined when there is none. */
  find(hash: string): Found | undefined {
    return this.#content.found.get(hash);
  }

  scope(id: string): Scope | undefined {
    return this.#content.scopes.get(id);
  }

  price(model: string): Price {
    return this.#content.prices.get(model) ?? PRICE_BY_DEFAULT;
  }

  /**
   * Takes one message. Returns the scopes that may have other limits now; "all" after a snapshot,
   * undefined while one is still arriving.
   */
  apply(update: TenancyUpdate): readonly string[] | "all" | undefined {
    if (!update.snapshot) {
      this.#pending = undefined;
      fold(this.#content, update);
      return [...update.scopes.map(({ id }) => id), ...update.removedScopes];
    }
    this.#pending ??= empty();
    fold(this.#pending, update);
    if (!update.snapshotEnd) return undefined;
    this.#content = this.#pending;
    this.#pending = undefined;
    this.#informed = true;
    return "all";
  }

  /** The stream broke off: chunks of an unfinished snapshot are void. */
  forgetPending(): void {
    this.#pending = undefined;
  }
}

function empty(): Content {
  return { found: new Map(), hashes: new Map(), scopes: new Map(), prices: new Map() };
}

function fold(content: Content, update: TenancyUpdate): void {
  for (const id of update.removedKeys) removeKey(content, id);
  for (const { id, caller, secrets } of update.keys) {
    removeKey(content, id);
    content.hashes.set(id, secrets.map(({ hash }) => hash));
    for (const { hash, expiresAtS } of secrets) content.found.set(hash, { caller, expiresAtS });
  }
  for (const scope of update.scopes) content.scopes.set(scope.id, scope);
  for (const id of update.removedScopes) content.scopes.delete(id);
  for (const [model, price] of update.prices) content.prices.set(model, price);
  for (const model of update.removedPrices) content.prices.delete(model);
}

function removeKey({ found, hashes }: Content, id: string): void {
  for (const hash of hashes.get(id) ?? []) found.delete(hash);
  hashes.delete(id);
}
