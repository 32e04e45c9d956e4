/**
 * What control keeps: only what cannot be rebuilt from the cluster. Everything else (nodes' hardware,
 * replicas, their keys) is learnt again from the agents, because a database that describes the
 * cluster can be wrong and the cluster cannot.
 */
import type { Claim, ClaimAnswer } from "../../core/lease/claim.ts";
import type { Audit, StoreRecord } from "../../core/store_record.ts";
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
export interface Store {
  /**
   * Asks to lead, or to go on leading. When a new epoch is granted the term is higher than any that
   * was stored, and stored itself. Throws `failed_precondition` for a schema of a newer control.
   */
  claim(claim: Claim): Promise<ClaimAnswer>;
  /** Ends this control's lease at once, so that another can lead. Nothing may be written after. */
  release(): Promise<void>;
  load(): Promise<Stored>;
  /**
   * Writes all records or, when it throws, none; after `system` it may be all of them, and then the
   * next claim begins a new epoch. What was written survives a power cut. Throws
   * `failed_precondition` when this control does not lead, or for a term below the stored one.
   */
  persist(records: readonly StoreRecord[]): Promise<void>;
  /** The newest `limit` audit records, newest first. */
  audit(limit: number): Promise<readonly Audit[]>;
  close(): Promise<void>;
}
