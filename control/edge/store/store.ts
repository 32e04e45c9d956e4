/**
 * What control keeps on disk: only what cannot be rebuilt from the cluster. Everything else (nodes'
 * hardware, replicas, their keys) is learnt again from the agents, because a database that
 * describes the cluster can be wrong and the cluster cannot.
 */
import type { Audit, StoreRecord } from "../../core/store_record.ts";
import type { Decisions } from "../../core/world.ts";

/** The last catalog that was applied. */
export interface StoredCatalog {
  readonly text: string;
  /** Rises by one with every applied text. */
  readonly revision: number;
}

/** Everything in the store that a start needs. */
export interface Stored {
  /** 0 when control has never run here. */
  readonly term: number;
  readonly knownNodes: ReadonlySet<string>;
  readonly decisions: Decisions;
  readonly catalog: StoredCatalog | undefined;
}

/**
 * A durable store. Its calls do not return before they are done: what is decided must not take
 * effect before it is stored, and the loop that decides is synchronous.
 */
export interface Store {
  load(): Stored;
  /**
   * Writes all records or, when it throws, none. What was written survives a power cut. Throws
   * `failed_precondition` for a term below the stored one, `system` when the disk refuses.
   */
  persist(records: readonly StoreRecord[]): void;
  /** The newest `limit` audit records, newest first. */
  audit(limit: number): readonly Audit[];
  close(): void;
}
