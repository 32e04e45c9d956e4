/**
 * What control keeps on disk: only what cannot be rebuilt from the cluster. Everything else (nodes'
 * hardware, replicas, their keys) is learnt again from the agents, because a database that
 * describes the cluster can be wrong and the cluster cannot.
 */
import type { Decisions } from "../../core/world.ts";

/** The last catalog that was applied. */
export interface StoredCatalog {
  readonly text: string;
  /** Rises by one with every applied text. */
  readonly revision: number;
  readonly appliedAtMs: number;
}

/** Everything in the store, as read at a start. */
export interface Stored {
  /** 0 when control has never run here. */
  readonly term: number;
  readonly knownNodes: ReadonlySet<string>;
  readonly decisions: Decisions;
  readonly catalog: StoredCatalog | undefined;
}

/** One line of the audit trail. */
export interface AuditEntry {
  readonly atMs: number;
  /** The operator's name, or "control" for what it did by itself. */
  readonly who: string;
  /** A closed snake_case word: the kind of the operator's event, or "apply_catalog". */
  readonly what: string;
  /** The node, model or document it was done to. */
  readonly target: string;
  readonly reason: string;
}

/**
 * A durable store. When a write resolves, it survives a power cut; when it rejects (`system`), it
 * was not done. Writes are applied in the order in which they were called.
 */
export interface Store {
  load(): Promise<Stored>;
  /** Never lowers it: a lower term than the stored one is `failed_precondition`. */
  saveTerm(term: number): Promise<void>;
  /** Replaces the names of known nodes. */
  saveKnownNodes(names: ReadonlySet<string>): Promise<void>;
  /** Replaces all decisions and writes the audit entry, both or neither. */
  saveDecisions(decisions: Decisions, entry: AuditEntry): Promise<void>;
  /** Replaces the applied catalog and writes the audit entry, both or neither. */
  saveCatalog(catalog: StoredCatalog, entry: AuditEntry): Promise<void>;
  /** The newest `limit` entries, newest first. */
  audit(limit: number): Promise<readonly AuditEntry[]>;
  close(): Promise<void>;
}
