/**
 * Keys, scopes and prices as routers get them: a part of every snapshot, and deltas. There may be
 * 100,000 keys, so what is sent is made only when somebody is there to get it, is kept encoded, a
 * thousand in a piece, and a change costs one piece.
 */
import { create, toBinary } from "@bufbuild/protobuf";
import { type WatchResponse, WatchResponseSchema } from "@heddle/proto/gen/router";
import type { Key, ModelPrice, Scope } from "@heddle/proto/gen/tenancy";
import { CHUNK_ITEMS } from "./delta.ts";

/**
 * How long a piece with scopes stays as it was encoded: it says how budgets stand, and when they
 * refill, as of then.
 */
const SCOPES_FRESH_MS = 10_000;

/** What there is now, by id; undefined for what is gone. */
export interface TenancySource {
  key(id: string): Key | undefined;
  scope(id: string): Scope | undefined;
  price(model: string): ModelPrice | undefined;
}

/** Ids of what changed, became, or is gone. */
export interface TenancyChange {
  readonly keys: Iterable<string>;
  readonly scopes: Iterable<string>;
  readonly prices: Iterable<string>;
}

export const NOBODY: TenancySource = {
  key: () => undefined,
  scope: () => undefined,
  price: () => undefined,
};

/** A message but for its revision, encoded. */
export type EncodedPart = Uint8Array<ArrayBuffer>;

type Fields = Partial<
  Pick<
    WatchResponse,
    "keys" | "scopes" | "prices" | "removedKeys" | "removedScopes" | "removedPrices"
  >
>;

export class TenancyFeed {
  readonly #source: TenancySource;
  readonly #keys: Pieces<Key>;
  readonly #scopes: Pieces<Scope>;
  readonly #prices: Pieces<ModelPrice>;

  constructor(source: TenancySource) {
    this.#source = source;
    const wrap = { keys: (keys: Key[]) => ({ keys }), scopes: (scopes: Scope[]) => ({ scopes }) };
    this.#keys = new Pieces((id) => source.key(id), wrap.keys, Infinity);
    this.#scopes = new Pieces((id) => source.scope(id), wrap.scopes, SCOPES_FRESH_MS);
    this.#prices = new Pieces((id) => source.price(id), (prices) => ({ prices }), Infinity);
  }

  /** Takes note of a change; nothing is made of it yet. */
  touch({ keys, scopes, prices }: TenancyChange): void {
    this.#keys.touch(keys);
    this.#scopes.touch(scopes);
    this.#prices.touch(prices);
  }

  /** The messages that say a change to whoever has what was before. */
  delta(change: TenancyChange): readonly EncodedPart[] {
    const keys = sorted(change.keys, (id) => this.#source.key(id));
    const scopes = sorted(change.scopes, (id) => this.#source.scope(id));
    const prices = sorted(change.prices, (model) => this.#source.price(model));
    const removed = {
      removedKeys: keys.gone,
      removedScopes: scopes.gone,
      removedPrices: prices.gone,
    };
    // What is gone goes first: nothing may be let in for longer than it must.
    return [
      ...(Object.values(removed).every((list) => list.length === 0) ? [] : [encoded(removed)]),
      ...slices(scopes.there).map((part) => encoded({ scopes: part })),
      ...slices(keys.there).map((part) => encoded({ keys: part })),
      ...slices(prices.there).map((part) => encoded({ prices: part })),
    ];
  }

  /** Everything, piece by piece, each made only when it is reached and not known already. */
  *snapshot(now: () => number): Generator<EncodedPart> {
    yield* this.#scopes.encoded(now);
    yield* this.#keys.encoded(now);
    yield* this.#prices.encoded(now);
  }
}

/** Ids in pieces of a thousand; an id stays in its piece, also while there is nothing under it. */
class Pieces<Item> {
  readonly #item: (id: string) => Item | undefined;
  readonly #wrap: (items: Item[]) => Fields;
  readonly #freshMs: number;
  readonly #pieces: Piece[] = [];
  readonly #places = new Map<string, Piece>();

  constructor(
    item: (id: string) => Item | undefined,
    wrap: (items: Item[]) => Fields,
    freshMs: number,
  ) {
    this.#item = item;
    this.#wrap = wrap;
    this.#freshMs = freshMs;
  }

  touch(ids: Iterable<string>): void {
    for (const id of ids) {
      let piece = this.#places.get(id);
      if (piece === undefined) {
        piece = this.#room();
        piece.ids.push(id);
        this.#places.set(id, piece);
      }
      piece.encoded = undefined;
    }
  }

  *encoded(now: () => number): Generator<EncodedPart> {
    for (const piece of this.#pieces) {
      const at = now();
      if (piece.encoded === undefined || at - piece.encoded.at > this.#freshMs) {
        const items = piece.ids.map(this.#item).filter((item) => item !== undefined);
        piece.encoded = { bytes: encoded(this.#wrap(items)), at };
      }
      if (piece.encoded.bytes.length > 0) yield piece.encoded.bytes;
    }
  }

  #room(): Piece {
    const last = this.#pieces.at(-1);
    if (last !== undefined && last.ids.length < CHUNK_ITEMS) return last;
    const piece: Piece = { ids: [], encoded: undefined };
    this.#pieces.push(piece);
    return piece;
  }
}

interface Piece {
  readonly ids: string[];
  encoded: { readonly bytes: EncodedPart; readonly at: number } | undefined;
}

function encoded(fields: Fields): EncodedPart {
  return Uint8Array.from(toBinary(WatchResponseSchema, create(WatchResponseSchema, fields)));
}

function sorted<Item>(
  ids: Iterable<string>,
  item: (id: string) => Item | undefined,
): { readonly there: Item[]; readonly gone: string[] } {
  const there: Item[] = [];
  const gone: string[] = [];
  for (const id of ids) {
    const found = item(id);
    if (found === undefined) gone.push(id);
    else there.push(found);
  }
  return { there, gone };
}

function slices<Item>(items: readonly Item[]): Item[][] {
  const found: Item[][] = [];
  for (let at = 0; at < items.length; at += CHUNK_ITEMS) {
    found.push(items.slice(at, at + CHUNK_ITEMS));
  }
  return found;
}
