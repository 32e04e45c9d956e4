/** Keys, limits and usage as rows of PostgreSQL. Every function runs inside a transaction. */
import { Buffer } from "node:buffer";
import type { TransactionSql } from "postgres";
import type { TenancyRecord, TenancyRow } from "../../../core/tenancy/stored.ts";
import {
  rollUp,
  type Spent,
  type UsageAnswer,
  type UsageEntry,
  type UsageHour,
  type UsageQuestion,
} from "../../../core/usage/rollup.ts";
import type { Retention } from "../store.ts";
import { PRUNE_ROWS, SUM_COLUMNS, usageAnswerOf, usageSelect } from "../usage_sql.ts";

/** Rows read in one transaction: all of a large store would take longer than one may. */
export const PAGE_ROWS = 10_000;

export async function writeTenancy(
  sql: TransactionSql,
  { kind, id, value }: TenancyRecord,
): Promise<void> {
  await (value === undefined ? sql`DELETE FROM tenancy WHERE kind = ${kind} AND id = ${id}` : sql`
      INSERT INTO tenancy VALUES (${kind}, ${id}, ${JSON.stringify(value)})
      ON CONFLICT (kind, id) DO UPDATE SET value = excluded.value`);
}

/** At most `PAGE_ROWS` rows that come after the given one. */
export async function readTenancyPage(
  sql: TransactionSql,
  after: Pick<TenancyRow, "kind" | "id">,
): Promise<TenancyRow[]> {
  const rows = await sql`
    SELECT kind, id, value FROM tenancy
    WHERE (kind, id) > (${after.kind}, ${after.id}) ORDER BY kind, id LIMIT ${PAGE_ROWS}`;
  return rows.map((row) => ({
    kind: String(row["kind"]),
    id: String(row["id"]),
    value: String(row["value"]),
  }));
}

export async function readUsed(
  sql: TransactionSql,
  after: string,
): Promise<(readonly [string, number])[]> {
  const rows = await sql`
    SELECT key, at FROM key_used WHERE key > ${after} ORDER BY key LIMIT ${PAGE_ROWS}`;
  return rows.map((row) => [String(row["key"]), Number(row["at"])] as const);
}

const SUM_NAMES = SUM_COLUMNS.map(([column]) => column);
const ADD_SUMS = SUM_NAMES.map((name) => `${name} = it.${name} + excluded.${name}`).join(", ");
const SUM_TYPES = SUM_NAMES.map((name) => `${name} bigint`).join(", ");
const ADD_HOURS = `
  INSERT INTO usage_hour AS it (hour, key, project, model, ${SUM_NAMES.join(", ")})
  SELECT * FROM json_to_recordset(($1::text)::json) AS row (
    hour bigint, key text, project text, model text, ${SUM_TYPES})
  ON CONFLICT (hour, key, project, model) DO UPDATE SET ${ADD_SUMS}`;
const ADD_POOLS = `
  INSERT INTO usage_pool AS it (hour, key, project, model, pool, ${SUM_NAMES.join(", ")})
  SELECT * FROM json_to_recordset(($1::text)::json) AS row (
    hour bigint, key text, project text, model text, pool text, ${SUM_TYPES})
  ON CONFLICT (hour, key, project, model, pool) DO UPDATE SET ${ADD_SUMS}`;

export async function writeUsage(
  sql: TransactionSql,
  entries: readonly UsageEntry[],
  used: ReadonlyMap<string, number>,
): Promise<ReadonlySet<string>> {
  // The first of those with one id, as where they come one after the other.
  const once = [...new Map(entries.toReversed().map((entry) => [entry.id, entry])).values()];
  const rows = JSON.stringify(
    once.map(({ id, at, record }) => ({
      id,
      at: Math.round(at),
      record: Buffer.from(record).toString("base64"),
    })),
  );
  const inserted = await sql`
    INSERT INTO usage_record
    SELECT id, at, decode(record, 'base64') FROM json_to_recordset((${rows}::text)::json)
      AS row (id text, at bigint, record text)
    ON CONFLICT DO NOTHING RETURNING id`;
  const fresh = new Set(inserted.map((row) => String(row["id"])));
  const { hours, pools, spent } = rollUp(once.filter(({ id }) => fresh.has(id)));
  await sql.unsafe(ADD_HOURS, [JSON.stringify(hours.map(rowOf))]);
  await sql.unsafe(ADD_POOLS, [JSON.stringify(pools.map(rowOf))]);
  await sql`
    INSERT INTO spent AS it (scope, period, micro)
    SELECT scope, period, micro FROM json_to_recordset((${JSON.stringify(spent)}::text)::json)
      AS row (scope text, period text, micro bigint)
    ON CONFLICT (period, scope) DO UPDATE SET micro = it.micro + excluded.micro`;
  if (used.size > 0) await writeUsed(sql, used);
  return fresh;
}

function rowOf({ sums, ...told }: UsageHour) {
  const columns = SUM_COLUMNS.map(([column, member]) => [column, sums[member]]);
  return { ...told, ...Object.fromEntries(columns) };
}

async function writeUsed(sql: TransactionSql, used: ReadonlyMap<string, number>): Promise<void> {
  const rows = JSON.stringify([...used].map(([key, at]) => ({ key, at: Math.round(at) })));
  await sql`
    INSERT INTO key_used AS it (key, at)
    SELECT key, at FROM json_to_recordset((${rows}::text)::json) AS row (key text, at bigint)
    ON CONFLICT (key) DO UPDATE SET at = greatest(it.at, excluded.at)`;
}

export async function readSpent(
  sql: TransactionSql,
  periods: readonly string[],
): Promise<Spent[]> {
  const rows = await sql`
    SELECT scope, period, micro FROM spent
    WHERE period IN (SELECT json_array_elements_text((${JSON.stringify(periods)}::text)::json))`;
  return rows.map((row) => ({
    scope: String(row["scope"]),
    period: String(row["period"]),
    micro: Number(row["micro"]),
  }));
}

export async function readUsage(
  sql: TransactionSql,
  question: UsageQuestion,
): Promise<UsageAnswer[]> {
  const { columns, table, groups } = usageSelect(question);
  const { from, until, key = null, projects, model = null, limit } = question;
  const rows = await sql.unsafe(
    `SELECT ${columns} FROM ${table}
    WHERE hour >= $1::bigint AND hour < $2::bigint
      AND ($3::text IS NULL OR key = $3) AND ($4::text IS NULL OR model = $4)
      AND ($5::text IS NULL OR project IN (SELECT json_array_elements_text(($5::text)::json)))
    ${groups} LIMIT $6::bigint`,
    [
      Math.round(from),
      Math.round(until),
      key,
      model,
      projects === undefined ? null : JSON.stringify(projects),
      limit,
    ],
  );
  return rows.map(usageAnswerOf);
}

export async function pruneUsage(
  sql: TransactionSql,
  { recordsFrom, hoursFrom, day, month }: Retention,
): Promise<boolean> {
  const deleted = [
    await sql`
      DELETE FROM usage_record WHERE id IN (
        SELECT id FROM usage_record WHERE at < ${Math.round(recordsFrom)}
        ORDER BY at LIMIT ${PRUNE_ROWS})`,
    await sql`
      DELETE FROM usage_hour WHERE (hour, key, project, model) IN (
        SELECT hour, key, project, model FROM usage_hour WHERE hour < ${Math.round(hoursFrom)}
        ORDER BY hour LIMIT ${PRUNE_ROWS})`,
    await sql`
      DELETE FROM usage_pool WHERE (hour, key, project, model, pool) IN (
        SELECT hour, key, project, model, pool FROM usage_pool WHERE hour < ${
      Math.round(hoursFrom)
    } ORDER BY hour LIMIT ${PRUNE_ROWS})`,
    await sql`
      DELETE FROM spent WHERE (period, scope) IN (
        SELECT period, scope FROM spent
        WHERE period COLLATE "C" < ${day}
          OR (period COLLATE "C" >= 'm' AND period COLLATE "C" < ${month})
        LIMIT ${PRUNE_ROWS})`,
  ];
  return deleted.some(({ count }) => count === PRUNE_ROWS);
}
