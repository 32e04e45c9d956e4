/** A snapshot and the changes after it, folded into one snapshot again, in the wire's own words. */
import { create } from "@bufbuild/protobuf";
import { type WatchResponse, WatchResponseSchema } from "@heddle/proto/gen/router";
import type { Key, ModelPrice, Scope } from "@heddle/proto/gen/tenancy";

/** As many as control puts into one message. */
const CHUNK = 1_000;

export class FoldedTenancy {
  readonly #keys = new Map<string, Key>();
  readonly #scopes = new Map<string, { scope: Scope; receivedAtMs: number }>();
  readonly #prices = new Map<string, ModelPrice>();
  #ended = true;

  /** Takes one message, in order. */
  take({ message, receivedAtMs }: { message: WatchResponse; receivedAtMs: number }): void {
    if (message.snapshot && this.#ended) {
      for (const map of [this.#keys, this.#scopes, this.#prices]) map.clear();
    }
    this.#ended = !message.snapshot || message.snapshotEnd;
    for (const id of message.removedKeys) this.#keys.delete(id);
    for (const key of message.keys) this.#keys.set(key.id, key);
    for (const id of message.removedScopes) this.#scopes.delete(id);
    for (const scope of message.scopes) this.#scopes.set(scope.id, { scope, receivedAtMs });
    for (const model of message.removedPrices) this.#prices.delete(model);
    for (const price of message.prices) this.#prices.set(price.model, price);
  }

  /** The chunks of one snapshot that says the same at `nowMs`. */
  *messages(nowMs: number): Generator<WatchResponse> {
    const keys = [...this.#keys.values()];
    for (let at = 0; at < keys.length; at += CHUNK) {
      yield create(WatchResponseSchema, { snapshot: true, keys: keys.slice(at, at + CHUNK) });
    }
    yield create(WatchResponseSchema, {
      snapshot: true,
      snapshotEnd: true,
      scopes: [...this.#scopes.values()].map(({ scope, receivedAtMs }) =>
        aged(scope, nowMs - receivedAtMs)
      ),
      prices: [...this.#prices.values()],
    });
  }
}

/** A scope as it would be sent `ms` later: its budget refills so much sooner. */
export function aged(scope: Scope, ms: number): Scope {
  const { budget } = scope;
  // 0 is never; what should have refilled meanwhile does so at once.
  if (budget === undefined || budget.refillMs === 0n) return scope;
  const refillMs = Math.max(1, Number(budget.refillMs) - Math.max(0, Math.round(ms)));
  return { ...scope, budget: { ...budget, refillMs: BigInt(refillMs) } };
}
