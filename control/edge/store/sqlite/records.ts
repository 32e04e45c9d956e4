/** One stored fact as the statements that write it, inside a transaction of the caller. */
import type { DatabaseSync } from "node:sqlite";
import { HeddleError } from "@heddle/proto/error";
import type { StoredMeasurement } from "../../../core/capacity/measurement.ts";
import type { StoreRecord } from "../../../core/store_record.ts";
import { catalogHash } from "../catalog_hash.ts";
import { type DecisionRow, decisionRow } from "../decision_rows.ts";
import { type FailureRow, failureRow } from "../failure_rows.ts";
import { measurementRow, MEASUREMENTS_MAX } from "../measurement_rows.ts";
import type { StoredCatalog } from "../store.ts";
import { writeTenancy } from "./ledger.ts";

/** Writes one record; the newest of each kind and subject stays. Throws for a term that is lower. */
export function writeRecord(database: DatabaseSync, record: StoreRecord): void {
  const run = runner(database);
  switch (record.kind) {
    case "term":
      return writeTerm(database, record.term);
    case "known_node":
      return run(
        record.known
          ? "INSERT OR IGNORE INTO known_node VALUES (?)"
          : "DELETE FROM known_node WHERE name = ?",
        record.node,
      );
    case "catalog":
      return writeCatalog(run, record);
    case "catalog_file":
      return run(
        "INSERT OR REPLACE INTO catalog_file VALUES (1, ?, ?)",
        record.control,
        record.hash,
      );
    case "node_decision":
    case "paused":
    case "scale":
    case "labels":
    case "replica_decision":
    case "strike":
      return writeDecision(run, decisionRow(record));
    case "failures":
      return writeFailures(run, failureRow(record));
    case "audit":
      return run(
        "INSERT INTO audit (at, by, action, subject, reason, before, after) " +
          "VALUES (?, ?, ?, ?, ?, ?, ?)",
        // Times of a monotonic clock may have fractions.
        Math.round(record.at),
        record.by,
        record.action,
        record.subject,
        record.reason,
        record.before ?? "",
        record.after ?? "",
      );
    case "scope":
    case "key":
    case "limits":
    case "price":
      return writeTenancy(database, record);
    case "measurement":
      return writeMeasurement(run, record.measurement);
    default:
      record satisfies never;
  }
}

/** 0 when none was stored. */
export function readTerm(database: DatabaseSync): number {
  return Number(database.prepare("SELECT term FROM term").get()?.["term"] ?? 0);
}

/** Throws `failed_precondition` for a term below the stored one. */
export function writeTerm(database: DatabaseSync, term: number): void {
  const stored = readTerm(database);
  if (term < stored) {
    throw new HeddleError(
      "failed_precondition",
      `Cannot save term ${term}: the store already has ${stored}`,
    );
  }
  runner(database)("INSERT OR REPLACE INTO term (id, term) VALUES (1, ?)", term);
}

type Run = (sql: string, ...values: (string | number)[]) => void;

function runner(database: DatabaseSync): Run {
  return (sql, ...values) => void database.prepare(sql).run(...values);
}

function writeCatalog(run: Run, { text, revision }: StoredCatalog): void {
  run("INSERT OR REPLACE INTO catalog VALUES (1, ?, ?)", text, revision);
  run("INSERT OR REPLACE INTO applied_catalog VALUES (?, ?)", catalogHash(text), revision);
}

function writeMeasurement(run: Run, measurement: StoredMeasurement): void {
  run(
    "INSERT OR REPLACE INTO measurement VALUES (?, ?, ?, ?, ?, ?)",
    ...measurementRow(measurement),
  );
  run(
    "DELETE FROM measurement WHERE at < (SELECT at FROM measurement ORDER BY at DESC LIMIT 1 OFFSET ?)",
    MEASUREMENTS_MAX - 1,
  );
}

function writeDecision(run: Run, { kind, subject, value }: DecisionRow): void {
  if (value === undefined) {
    run("DELETE FROM decision WHERE kind = ? AND subject = ?", kind, subject);
  } else {
    run("INSERT OR REPLACE INTO decision VALUES (?, ?, ?)", kind, subject, value);
  }
}

function writeFailures(run: Run, { model, value }: FailureRow): void {
  if (value === undefined) run("DELETE FROM failures WHERE model = ?", model);
  else run("INSERT OR REPLACE INTO failures VALUES (?, ?)", model, value);
}
