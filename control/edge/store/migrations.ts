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
];

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
