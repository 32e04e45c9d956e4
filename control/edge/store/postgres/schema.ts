/** The tables in PostgreSQL, a numbered step at a time. Steps are never changed once released. */
import type { TransactionSql } from "postgres";
import { HeddleError } from "@heddle/proto/error";

/**
 * Step n brings the database from schema n to n + 1. Additive, so that a control of the version
 * before can go on leading while the first of the new version starts.
 */
const STEPS: readonly string[] = [
  `
  CREATE TABLE heddle.term (
    id integer PRIMARY KEY CHECK (id = 1),
    term bigint NOT NULL
  );
  INSERT INTO heddle.term VALUES (1, 0);
  CREATE TABLE heddle.lease (
    id integer PRIMARY KEY CHECK (id = 1),
    holder text NOT NULL,
    name text NOT NULL,
    address text NOT NULL,
    epoch bigint NOT NULL,
    writes bigint NOT NULL,
    ends_at timestamptz NOT NULL
  );
  INSERT INTO heddle.lease VALUES (1, '', '', '', 0, 0, to_timestamp(0));
  CREATE TABLE heddle.known_node (
    name text PRIMARY KEY
  );
  CREATE TABLE heddle.decision (
    kind text NOT NULL,
    subject text NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (kind, subject)
  );
  CREATE TABLE heddle.catalog (
    id integer PRIMARY KEY CHECK (id = 1),
    text text NOT NULL,
    revision bigint NOT NULL
  );
  CREATE TABLE heddle.applied_catalog (
    hash text PRIMARY KEY,
    revision bigint NOT NULL
  );
  CREATE TABLE heddle.catalog_file (
    id integer PRIMARY KEY CHECK (id = 1),
    control text NOT NULL,
    hash text NOT NULL
  );
  CREATE TABLE heddle.audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at bigint NOT NULL,
    by text NOT NULL,
    action text NOT NULL,
    subject text NOT NULL,
    reason text NOT NULL
  );
  `,
  `
  CREATE TABLE heddle.tenancy (
    kind text NOT NULL,
    id text NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (kind, id)
  );
  CREATE TABLE heddle.key_used (
    key text PRIMARY KEY,
    at bigint NOT NULL
  );
  CREATE TABLE heddle.usage_record (
    id text PRIMARY KEY,
    at bigint NOT NULL,
    record bytea NOT NULL
  );
  CREATE INDEX usage_record_at ON heddle.usage_record (at);
  CREATE TABLE heddle.usage_hour (
    hour bigint NOT NULL,
    key text NOT NULL,
    project text NOT NULL,
    model text NOT NULL,
    requests bigint NOT NULL,
    failures bigint NOT NULL,
    prompt_tokens bigint NOT NULL,
    completion_tokens bigint NOT NULL,
    cached_tokens bigint NOT NULL,
    reasoning_tokens bigint NOT NULL,
    estimated bigint NOT NULL,
    cost_micro bigint NOT NULL,
    duration_ms bigint NOT NULL,
    wasted_tokens bigint NOT NULL,
    PRIMARY KEY (hour, key, project, model)
  );
  CREATE TABLE heddle.spent (
    scope text NOT NULL,
    period text NOT NULL,
    micro bigint NOT NULL,
    PRIMARY KEY (period, scope)
  );
  ALTER TABLE heddle.audit ADD COLUMN before text NOT NULL DEFAULT '';
  ALTER TABLE heddle.audit ADD COLUMN after text NOT NULL DEFAULT '';
  `,
  `
  CREATE TABLE heddle.measurement (
    fingerprint text NOT NULL,
    hardware_class text NOT NULL,
    engine_version text NOT NULL,
    shape text NOT NULL,
    at bigint NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (fingerprint, hardware_class, engine_version, shape)
  );
  `,
  `
  CREATE TABLE heddle.usage_pool (
    hour bigint NOT NULL,
    key text NOT NULL,
    project text NOT NULL,
    model text NOT NULL,
    pool text NOT NULL,
    requests bigint NOT NULL,
    failures bigint NOT NULL,
    prompt_tokens bigint NOT NULL,
    completion_tokens bigint NOT NULL,
    cached_tokens bigint NOT NULL,
    reasoning_tokens bigint NOT NULL,
    estimated bigint NOT NULL,
    cost_micro bigint NOT NULL,
    duration_ms bigint NOT NULL,
    wasted_tokens bigint NOT NULL,
    PRIMARY KEY (hour, key, project, model, pool)
  );
  `,
  `
  CREATE TABLE heddle.failures (
    model text PRIMARY KEY,
    value text NOT NULL
  );
  `,
];

/** Any number that nobody else uses in this database: two controls must not migrate at once. */
const MIGRATION_LOCK = 7_443_001;

/** Brings the database to today's schema. Throws `failed_precondition` for that of a newer control. */
export async function migrate(sql: TransactionSql): Promise<void> {
  await sql`SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})`;
  const [existing] = await sql`SELECT to_regclass('heddle.schema_version')::text AS name`;
  if (existing?.["name"] === null) {
    await sql`CREATE SCHEMA IF NOT EXISTS heddle`;
    await sql`CREATE TABLE heddle.schema_version (version integer NOT NULL)`;
    await sql`INSERT INTO heddle.schema_version VALUES (0)`;
  }
  const [row] = await sql`SELECT version FROM heddle.schema_version`;
  const version = Number(row?.["version"]);
  if (version > STEPS.length) {
    throw new HeddleError(
      "failed_precondition",
      `Cannot use the store: its schema is ${version}, this control knows up to ${STEPS.length}. ` +
        "Run the newer control again, or restore a backup made before it",
    );
  }
  if (version === STEPS.length) return;
  for (const step of STEPS.slice(version)) await sql.unsafe(step);
  await sql`UPDATE heddle.schema_version SET version = ${STEPS.length}`;
}
