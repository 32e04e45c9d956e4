/**
 * Who may lead. Controls that share a store claim one lease in it, over and over: the holder to keep
 * it, the others to get it when it ends. The store judges every claim in one transaction, so that
 * two can never be told yes at once.
 *
 * An epoch is one unbroken time of leading; it rises whenever the lease changes hands. Every write of
 * the holder names the epoch and counts up, so a write of one that was deposed is refused, and a
 * store that is not as its holder left it (a write whose fate was unknown did arrive; a backup was
 * restored) ends the epoch: the holder begins anew from what is stored instead of guessing.
 */

/** A control that claims. */
export interface Claim {
  /** Unlike that of any other process, ever. */
  readonly holder: string;
  /** What operators call it. */
  readonly name: string;
  /** Where its admin API is; empty when it listens on every address. */
  readonly address: string;
  /** How long the lease holds when it is granted. */
  readonly leaseMs: number;
}

/** As operators and the other controls see the holder. */
export interface Leader {
  readonly name: string;
  readonly address: string;
  readonly term: number;
}

export type ClaimAnswer =
  /** Good for `validMs` from the moment before the claim was sent. */
  | {
    readonly kind: "granted";
    readonly epoch: number;
    readonly term: number;
    readonly validMs: number;
  }
  | { readonly kind: "held"; readonly by: Leader; readonly remainingMs: number };

/** The lease as it stands, read under its lock. */
export interface LeaseRow {
  readonly holder: string;
  readonly epoch: number;
  /** Writes of the holder in this epoch. */
  readonly writes: number;
  /** By the store's clock; 0 or less once it has ended. */
  readonly remainingMs: number;
}

/** What a control knows of its own epoch: the last it was granted, and the writes it saw succeed. */
export interface Held {
  readonly holder: string;
  readonly epoch: number;
  readonly writes: number;
}

/** `take` begins a new epoch, in a new term. */
export type ClaimVerdict = "renew" | "take" | "held";

/** Judges a claim against the lease. Pure. */
export function judgeClaim(row: LeaseRow, mine: Held): ClaimVerdict {
  if (row.holder === mine.holder) {
    // Even when it has run out: nobody else has led in between.
    return row.epoch === mine.epoch && row.writes === mine.writes ? "renew" : "take";
  }
  return row.remainingMs > 0 ? "held" : "take";
}
