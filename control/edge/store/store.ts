/**
 * What control keeps on disk: only what cannot be rebuilt from the cluster. Everything else (nodes'
 * hardware, replicas, their keys) is learnt again from the agents, because a database that
 * describes the cluster can be wrong and the cluster cannot.
 */
import type { Revision } from "@heddle/proto/revision";

/** An operator's standing decision about a node. At least one of the two is true. */
export interface NodeDecision {
  readonly node: string;
  readonly cordoned: boolean;
  readonly draining: boolean;
  /** The operator's name, from the certificate. */
  readonly decidedBy: string;
  readonly reason: string;
  readonly decidedAtMs: number;
}

/** The last catalog that was applied. */
export interface StoredCatalog {
  readonly text: string;
  readonly revision: Revision;
  readonly appliedAtMs: number;
}

/** Everything in the store, as read at a start. */
export interface Stored {
  /** 0 when control has never run here. */
  readonly term: number;
  /** Sorted. */
  readonly knownNodes: readonly string[];
  /** Sorted by node. */
  readonly decisions: readonly NodeDecision[];
  readonly catalog: StoredCatalog | undefined;
}

/** One line of the audit trail. */
export interface AuditEntry {
  readonly atMs: number;
  readonly who: string;
  /** A closed snake_case word: "cordon", "uncordon", "drain", "apply_catalog". */
  readonly what: string;
  /** The node or document it was done to. */
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
  /** Remembers nodes by name; known ones are left as they are. */
  addKnownNodes(names: readonly string[]): Promise<void>;
  /** Replaces the decision about its node and writes the audit entry, both or neither. */
  saveDecision(decision: NodeDecision, entry: AuditEntry): Promise<void>;
  /** Ends the decision about a node, if there is one, and writes the audit entry. */
  clearDecision(node: string, entry: AuditEntry): Promise<void>;
  /** Replaces the applied catalog and writes the audit entry, both or neither. */
  saveCatalog(catalog: StoredCatalog, entry: AuditEntry): Promise<void>;
  /** The newest `limit` entries, newest first. */
  audit(limit: number): Promise<readonly AuditEntry[]>;
  close(): Promise<void>;
}
