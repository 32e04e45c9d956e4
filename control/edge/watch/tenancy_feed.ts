/**
 * Keys, scopes and prices as routers get them: a part of every snapshot, and deltas. There may be
 * 100,000 keys, so they are kept encoded, a thousand in a piece, and a change costs one piece.
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

/** What changed; an id without a value is gone. */
export interface TenancyChange {
  readonly keys: ReadonlyMap<string, Key | undefined>;
  readonly scopes: ReadonlyMap<string, Scope | undefined>;
  readonly prices: ReadonlyMap<string, ModelPrice | undefined>;
}

/** A message but for its revision, encoded. */
export type EncodedPart = Uint8Array<ArrayBuffer>;

type Items = Partial<Pick<WatchResponse, "keys" | "scopes" | "prices">>;

export class TenancyFeed {
  readonly #keys = new Pieces<Key>((keys) => ({ keys }), Infinity);
  readonly #scopes = new Pieces<Scope>(
    (scopes) => ({ scopes: scopes.map((scope) => this.refresh(scope)) }),
    SCOPES_FRESH_MS,
  );
  readonly #prices = new Pieces<ModelPrice>((prices) => ({ prices }), Infinity);

  /** Asked for a scope when it is encoded: its budget may stand differently by now. */
  refresh: (scope: Scope) => Scope = (scope) => scope;

  /** Takes a change in, and gives the messages that say it. */
  apply({ keys, scopes, prices }: TenancyChange): readonly EncodedPart[] {
    this.#keys.change(keys);
    this.#scopes.change(scopes);
    this.#prices.change(prices);
    // What is gone goes first: nothing may be let in for longer than it must.
    const removed = { removedKeys: gone(keys), removedScopes: gone(scopes) };
    const rest = { ...removed, removedPrices: gone(prices) };
    const nothing = Object.values(rest).every((list) => list.length === 0);
    return [
      ...(nothing ? [] : [encoded(rest)]),
      ...pieces(there(scopes)).map((part) => encoded({ scopes: part })),
      ...pieces(there(keys)).map((part) => encoded({ keys: part })),
      ...pieces(there(prices)).map((part) => encoded({ prices: part })),
    ];
  }

  /** Everything, piece by piece, each encoded only when it is reached and not known already. */
  *snapshot(now: () => number): Generator<EncodedPart> {
    yield* this.#scopes.encoded(now);
    yield* this.#keys.encoded(now);
    yield* this.#prices.encoded(now);
  }
}

/** Items by id in pieces of a thousand; an item stays in its piece. */
class Pieces<Item> {
  readonly #wrap: (items: Item[]) => Items;
  readonly #freshMs: number;
  readonly #pieces: Piece<Item>[] = [];
  readonly #places = new Map<string, Piece<Item>>();

  constructor(wrap: (items: Item[]) => Items, freshMs: number) {
    this.#wrap = wrap;
    this.#freshMs = freshMs;
  }

  change(changes: ReadonlyMap<string, Item | undefined>): void {
    for (const [id, item] of changes) {
      const piece = this.#places.get(id) ?? (item === undefined ? undefined : this.#room());
      if (piece === undefined) continue;
      piece.encoded = undefined;
      if (item === undefined) {
        piece.items.delete(id);
        this.#places.delete(id);
      } else {
        piece.items.set(id, item);
        this.#places.set(id, piece);
      }
    }
  }

  *encoded(now: () => number): Generator<EncodedPart> {
    for (const piece of this.#pieces) {
      if (piece.items.size === 0) continue;
      const at = now();
      if (piece.encoded === undefined || at - piece.encoded.at > this.#freshMs) {
        piece.encoded = { bytes: encoded(this.#wrap([...piece.items.values()])), at };
      }
      yield piece.encoded.bytes;
    }
  }

  #room(): Piece<Item> {
    const last = this.#pieces.at(-1);
    if (last !== undefined && last.items.size < CHUNK_ITEMS) return last;
    const piece: Piece<Item> = { items: new Map(), encoded: undefined };
    this.#pieces.push(piece);
    return piece;
  }
}

interface Piece<Item> {
  readonly items: Map<string, Item>;
  encoded: { readonly bytes: EncodedPart; readonly at: number } | undefined;
}

function encoded(part: Partial<WatchResponse>): EncodedPart {
  const { $typeName: _, $unknown: _unknown, ...fields } = part;
  return Uint8Array.from(toBinary(WatchResponseSchema, create(WatchResponseSchema, fields)));
}

function gone(changes: ReadonlyMap<string, unknown>): string[] {
  return [...changes].filter(([, value]) => value === undefined).map(([id]) => id);
}

function there<Item>(changes: ReadonlyMap<string, Item | undefined>): Item[] {
  return [...changes.values()].filter((item) => item !== undefined);
}

function pieces<Item>(items: readonly Item[]): Item[][] {
  const found: Item[][] = [];
  for (let at = 0; at < items.length; at += CHUNK_ITEMS) {
    found.push(items.slice(at, at + CHUNK_ITEMS));
  }
  return found;
}
