/**
 * What control keeps: only what cannot be rebuilt from the cluster. Everything else (nodes' hardware,
 * replicas, their keys) is learnt again from the agents, because a database that describes the
 * cluster can be wrong and the cluster cannot.
 */
import type { Claim, ClaimAnswer } from "../../core/lease/claim.ts";
import type { StoredMeasurement } from "../../core/capacity/measurement.ts";
import type { Failures } from "../../core/deciding/failures.ts";
import type { Audit, StoreRecord } from "../../core/store_record.ts";
import type { TenancyRow } from "../../core/tenancy/stored.ts";
import type { Spent, UsageAnswer, UsageEntry, UsageQuestion } from "../../core/usage/rollup.ts";
import type { Decisions } from "../../core/world.ts";

/** The last catalog that was applied. */
export interface StoredCatalog {
  readonly text: string;
  /** Rises by one with every applied text. */
  readonly revision: number;
}

/** What a control had in its catalog file when it last dealt with it. */
export interface SeenCatalogFile {
  /** Name of that control. */
  readonly control: string;
  /** Of the text; see catalog_hash.ts. */
  readonly hash: string;
}

/** Everything in the store that a time of leading begins with. */
export interface Stored {
  readonly knownNodes: ReadonlySet<string>;
  readonly decisions: Decisions;
  /** Starts that failed, by model. */
  readonly failures: ReadonlyMap<string, Failures>;
  readonly catalog: StoredCatalog | undefined;
  /** Hashes of every text that was ever applied. */
  readonly appliedCatalogs: ReadonlySet<string>;
  /** Of the control that led last. */
  readonly catalogFile: SeenCatalogFile | undefined;
}

/**
 * A durable store, and who may write to it. Every call but `close` may throw `system` when the store
 * does not answer or refuses, and ends in bounded time.
 */
export interface Store extends UsageStore {
  /**
   * Asks to lead, or to go on leading. When a new epoch is granted the term is higher than any that
   * was stored, and stored itself. Throws `failed_precondition` for a schema of a newer control.
   */
  claim(claim: Claim): Promise<ClaimAnswer>;
  /** Ends this control's lease at once, so that another can lead. Nothing may be written after. */
  release(): Promise<void>;
  load(): Promise<Stored>;
  /** What was struck, also for a control that does not lead. */
  struck(): Promise<Decisions["struck"]>;
  /**
   * Writes all records or, when it throws, none; after `system` it may be all of them, and then the
   * next claim begins a new epoch. What was written survives a power cut. Throws
   * `failed_precondition` when this control does not lead, or for a term below the stored one.
   */
  persist(records: readonly StoreRecord[]): Promise<void>;
  /** The newest `limit` audit records, newest first. */
  audit(limit: number): Promise<readonly Audit[]>;
  /** The newest measurements, newest first; a bounded number of them is kept. */
  measurements(): Promise<readonly StoredMeasurement[]>;
  /** Ends what is open; nothing may be asked after. */
  close(): Promise<void>;
}

/** What keys, limits and prices there are, as they are stored, and when keys were used last. */
export interface StoredTenancy {
  readonly rows: readonly TenancyRow[];
  /** By key, in ms since 1970. */
  readonly used: ReadonlyMap<string, number>;
}

/** What to forget: whatever is older. */
export interface Retention {
  /** Of records and of hours, in ms since 1970. */
  readonly recordsFrom: number;
  readonly hoursFrom: number;
  /** The day and month of budgets that are now, as periods are named; those before are over. */
  readonly day: string;
  readonly month: string;
}

/** Who may use what, and what was used: the part of a store that grows with traffic. */
export interface UsageStore {
  loadTenancy(): Promise<StoredTenancy>;
  /**
   * Writes all entries that are not there yet, by id, with their sums, and when keys were used;
   * or, when it throws, as `persist` does, none. Gives the ids that were new. They survive a power cut.
   */
  recordUsage(
    entries: readonly UsageEntry[],
    used: ReadonlyMap<string, number>,
  ): Promise<ReadonlySet<string>>;
  /** What was spent in these periods. */
  spent(periods: readonly string[]): Promise<readonly Spent[]>;
  /** Sums in the order of the question's columns. Takes as long as it takes, beside everything else. */
  usage(question: UsageQuestion): Promise<readonly UsageAnswer[]>;
  /** Forgets a bounded part of what is too old. True when there may be more. */
  prune(retention: Retention): Promise<boolean>;
  /** The whole store as one file, as it is at one moment. Throws `failed_precondition` where it cannot. */
  backup(): AsyncIterable<Uint8Array<ArrayBuffer>>;
  /**
   * Puts everything of a backup in the place of what is there, all or nothing, but for the term. What
   * is in memory is then of the past: whoever leads must begin anew. Throws `invalid_input` for what is
   * no backup, `failed_precondition` for one of a newer control, or where it cannot.
   */
  restore(file: AsyncIterable<Uint8Array>): Promise<void>;
}
