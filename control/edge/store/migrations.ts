/** The store's schema, a numbered step at a time. Steps are never changed once released. */
import type { DatabaseSync } from "node:sqlite";
import { HeddleError } from "@heddle/proto/error";

/** Step n brings a database from schema n to n + 1. Additive, so that the version before can read. */
const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE term (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    term INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE known_node (
    name TEXT PRIMARY KEY
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE decision (
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (kind, subject)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE catalog (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    text TEXT NOT NULL,
    revision INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE audit (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    by TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    reason TEXT NOT NULL
  ) STRICT;
  `,
  `
  CREATE TABLE applied_catalog (
    hash TEXT PRIMARY KEY,
    revision INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE catalog_file (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    control TEXT NOT NULL,
    hash TEXT NOT NULL
  ) STRICT;
  `,
  `
  CREATE TABLE tenancy (
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (kind, id)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE key_used (
    key TEXT PRIMARY KEY,
    at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE usage_record (
    id TEXT PRIMARY KEY,
    at INTEGER NOT NULL,
    record BLOB NOT NULL
  ) STRICT;
  CREATE INDEX usage_record_at ON usage_record (at);
  CREATE TABLE usage_hour (
    hour INTEGER NOT NULL,
    key TEXT NOT NULL,
    project TEXT NOT NULL,
    model TEXT NOT NULL,
    requests INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    reasoning_tokens INTEGER NOT NULL,
    estimated INTEGER NOT NULL,
    cost_micro INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    wasted_tokens INTEGER NOT NULL,
    PRIMARY KEY (hour, key, project, model)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE spent (
    scope TEXT NOT NULL,
    period TEXT NOT NULL,
    micro INTEGER NOT NULL,
    PRIMARY KEY (period, scope)
  ) STRICT, WITHOUT ROWID;
  ALTER TABLE audit ADD COLUMN before TEXT NOT NULL DEFAULT '';
  ALTER TABLE audit ADD COLUMN after TEXT NOT NULL DEFAULT '';
  `,
  `
  CREATE TABLE measurement (
    fingerprint TEXT NOT NULL,
    hardware_class TEXT NOT NULL,
    engine_version TEXT NOT NULL,
    shape TEXT NOT NULL,
    at INTEGER NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (fingerprint, hardware_class, engine_version, shape)
  ) STRICT, WITHOUT ROWID;
  `,
  `
  CREATE TABLE usage_pool (
    hour INTEGER NOT NULL,
    key TEXT NOT NULL,
    project TEXT NOT NULL,
    model TEXT NOT NULL,
    pool TEXT NOT NULL,
    requests INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    reasoning_tokens INTEGER NOT NULL,
    estimated INTEGER NOT NULL,
    cost_micro INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    wasted_tokens INTEGER NOT NULL,
    PRIMARY KEY (hour, key, project, model, pool)
  ) STRICT, WITHOUT ROWID;
  `,
  `
  CREATE TABLE failures (
    model TEXT PRIMARY KEY,
    value TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  `,
];

/** Those of the first step: a file that lacks one of them is no store. */
export const MIGRATED_TABLES = ["term", "known_node", "decision", "catalog", "audit"] as const;

/**
 * Brings the database to today's schema, all steps or none, while holding its write lock so that
 * two programs cannot migrate at once. Throws `failed_precondition` for a schema of a newer control.
 */
export function migrate(database: DatabaseSync, path: string): void {
  database.exec("BEGIN IMMEDIATE");
  try {
    const version = Number(database.prepare("PRAGMA user_version").get()?.["user_version"]);
    if (version > MIGRATIONS.length) {
      throw new HeddleError(
        "failed_precondition",
        `Cannot open store ${path}: its schema is ${version}, this control knows up to ` +
          `${MIGRATIONS.length}. Run the newer control again, or restore a backup made before it`,
      );
    }
    for (const step of MIGRATIONS.slice(version)) database.exec(step);
    database.exec(`PRAGMA user_version = ${MIGRATIONS.length}`);
    database.exec("COMMIT");
  } catch (error) {
    database.exec("ROLLBACK");
    throw error;
  }
}
