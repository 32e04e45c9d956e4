/** The read-only view of a generated message that decision code works with. */
import type { Message } from "@bufbuild/protobuf";

type Leaf = string | number | bigint | boolean | Uint8Array | undefined | null;

/**
 * A generated message without its bookkeeping members, read-only all the way down. A generated
 * message is assignable to its own `Plain`, so decoding a noun that needs no other shape costs
 * nothing.
 */
export type Plain<T> = T extends Leaf ? T
  : T extends readonly (infer Item)[] ? readonly Plain<Item>[]
  : T extends Message ? { readonly [K in keyof Omit<T, "$typeName" | "$unknown">]: Plain<T[K]> }
  : { readonly [K in keyof T]: Plain<T[K]> };
