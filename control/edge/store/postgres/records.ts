/** One stored fact as the statements that write it. */
import type { TransactionSql } from "postgres";
import { HeddleError } from "@heddle/proto/error";
import type { StoreRecord } from "../../../core/store_record.ts";
import type { StoredMeasurement } from "../../../core/capacity/measurement.ts";
import { catalogHash } from "../catalog_hash.ts";
import { type DecisionRow, decisionRow } from "../decision_rows.ts";
import { type FailureRow, failureRow } from "../failure_rows.ts";
import { measurementRow, MEASUREMENTS_MAX } from "../measurement_rows.ts";
import { writeTenancy } from "./ledger.ts";

/** Writes one record; the newest of each kind and subject stays. Throws for a term that is lower. */
export async function writeRecord(sql: TransactionSql, record: StoreRecord): Promise<void> {
  switch (record.kind) {
    case "term":
      return await writeTerm(sql, record.term);
    case "known_node":
      await (record.known
        ? sql`INSERT INTO known_node VALUES (${record.node}) ON CONFLICT DO NOTHING`
        : sql`DELETE FROM known_node WHERE name = ${record.node}`);
      return;
    case "catalog":
      return await writeCatalog(sql, record);
    case "catalog_file":
      await sql`
        INSERT INTO catalog_file VALUES (1, ${record.control}, ${record.hash})
        ON CONFLICT (id) DO UPDATE SET control = excluded.control, hash = excluded.hash`;
      return;
    case "node_decision":
    case "paused":
    case "scale":
    case "labels":
    case "replica_decision":
    case "strike":
      return await writeDecision(sql, decisionRow(record));
    case "failures":
      return await writeFailures(sql, failureRow(record));
    case "audit": {
      // Times of a monotonic clock may have fractions.
      const { by, action, subject, reason, before = "", after = "" } = record;
      await sql`
        INSERT INTO audit (at, by, action, subject, reason, before, after)
        VALUES (${Math.round(record.at)}, ${by}, ${action}, ${subject}, ${reason}, ${before},
          ${after})`;
      return;
    }
    case "scope":
    case "key":
    case "limits":
    case "price":
      return await writeTenancy(sql, record);
    case "measurement":
      return await writeMeasurement(sql, record.measurement);
    default:
      record satisfies never;
  }
}

async function writeMeasurement(
  sql: TransactionSql,
  measurement: StoredMeasurement,
): Promise<void> {
  const [fingerprint, hardware, version, shape, at, value] = measurementRow(measurement);
  await sql`
    INSERT INTO measurement VALUES (${fingerprint}, ${hardware}, ${version}, ${shape}, ${at}, ${value})
    ON CONFLICT (fingerprint, hardware_class, engine_version, shape)
    DO UPDATE SET at = excluded.at, value = excluded.value`;
  await sql`
    DELETE FROM measurement WHERE at <
      (SELECT at FROM measurement ORDER BY at DESC LIMIT 1 OFFSET ${MEASUREMENTS_MAX - 1})`;
}

async function writeTerm(sql: TransactionSql, term: number): Promise<void> {
  const [row] = await sql`SELECT term FROM term`;
  const stored = Number(row?.["term"]);
  if (term < stored) {
    throw new HeddleError(
      "failed_precondition",
      `Cannot save term ${term}: the store already has ${stored}`,
    );
  }
  await sql`UPDATE term SET term = ${term}`;
}

async function writeCatalog(
  sql: TransactionSql,
  { text, revision }: { readonly text: string; readonly revision: number },
): Promise<void> {
  await sql`
    INSERT INTO catalog VALUES (1, ${text}, ${revision})
    ON CONFLICT (id) DO UPDATE SET text = excluded.text, revision = excluded.revision`;
  await sql`
    INSERT INTO applied_catalog VALUES (${catalogHash(text)}, ${revision})
    ON CONFLICT (hash) DO UPDATE SET revision = excluded.revision`;
}

async function writeFailures(
  sql: TransactionSql,
  { model, value }: FailureRow,
): Promise<void> {
  await (value === undefined ? sql`DELETE FROM failures WHERE model = ${model}` : sql`
      INSERT INTO failures VALUES (${model}, ${value})
      ON CONFLICT (model) DO UPDATE SET value = excluded.value`);
}

async function writeDecision(
  sql: TransactionSql,
  { kind, subject, value }: DecisionRow,
): Promise<void> {
  await (value === undefined
    ? sql`DELETE FROM decision WHERE kind = ${kind} AND subject = ${subject}`
    : sql`
      INSERT INTO decision VALUES (${kind}, ${subject}, ${value})
      ON CONFLICT (kind, subject) DO UPDATE SET value = excluded.value`);
}
