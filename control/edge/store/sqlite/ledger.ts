/** Keys, limits and usage as rows of SQLite. Every function runs inside a transaction of its caller. */
import type { DatabaseSync } from "node:sqlite";
import type { TenancyRecord } from "../../../core/tenancy/stored.ts";
import {
  rollUp,
  type Spent,
  type UsageEntry,
  type UsageQuestion,
} from "../../../core/usage/rollup.ts";
import type { Retention, StoredTenancy } from "../store.ts";
import type { Statement } from "./worker.ts";
import { PRUNE_ROWS, SUM_COLUMNS, usageSelect } from "../usage_sql.ts";

export function writeTenancy(database: DatabaseSync, { kind, id, value }: TenancyRecord): void {
  if (value === undefined) {
    database.prepare("DELETE FROM tenancy WHERE kind = ? AND id = ?").run(kind, id);
  } else {
    database.prepare("INSERT OR REPLACE INTO tenancy VALUES (?, ?, ?)")
      .run(kind, id, JSON.stringify(value));
  }
}

export function readTenancy(database: DatabaseSync): StoredTenancy {
  return {
    rows: database.prepare("SELECT kind, id, value FROM tenancy").all().map((row) => ({
      kind: String(row["kind"]),
      id: String(row["id"]),
      value: String(row["value"]),
    })),
    used: new Map(
      database.prepare("SELECT key, at FROM key_used").all()
        .map((row) => [String(row["key"]), Number(row["at"])]),
    ),
  };
}

const SUM_NAMES = SUM_COLUMNS.map(([column]) => column);
const ADD_HOUR = `
  INSERT INTO usage_hour (hour, key, project, model, ${SUM_NAMES.join(", ")})
  VALUES (?, ?, ?, ?, ${SUM_NAMES.map(() => "?").join(", ")})
  ON CONFLICT DO UPDATE SET
    ${SUM_NAMES.map((name) => `${name} = ${name} + excluded.${name}`).join(", ")}`;
const ADD_POOL = `
  INSERT INTO usage_pool (hour, key, project, model, pool, ${SUM_NAMES.join(", ")})
  VALUES (?, ?, ?, ?, ?, ${SUM_NAMES.map(() => "?").join(", ")})
  ON CONFLICT DO UPDATE SET
    ${SUM_NAMES.map((name) => `${name} = ${name} + excluded.${name}`).join(", ")}`;
const ADD_SPENT = `
  INSERT INTO spent (scope, period, micro) VALUES (?, ?, ?)
  ON CONFLICT DO UPDATE SET micro = micro + excluded.micro`;
const SET_USED = `
  INSERT INTO key_used VALUES (?, ?) ON CONFLICT DO UPDATE SET at = max(at, excluded.at)`;

export function writeUsage(
  database: DatabaseSync,
  entries: readonly UsageEntry[],
  used: ReadonlyMap<string, number>,
): ReadonlySet<string> {
  const insert = database.prepare("INSERT OR IGNORE INTO usage_record VALUES (?, ?, ?)");
  const fresh = entries.filter(({ id, at, record }) =>
    Number(insert.run(id, Math.round(at), record).changes) === 1
  );
  const { hours, pools, spent } = rollUp(fresh);
  const addHour = database.prepare(ADD_HOUR);
  for (const { hour, key, project, model, sums } of hours) {
    addHour.run(hour, key, project, model, ...SUM_COLUMNS.map(([, member]) => sums[member]));
  }
  const addPool = database.prepare(ADD_POOL);
  for (const { hour, key, project, model, pool, sums } of pools) {
    addPool.run(hour, key, project, model, pool, ...SUM_COLUMNS.map(([, member]) => sums[member]));
  }
  const addSpent = database.prepare(ADD_SPENT);
  for (const { scope, period, micro } of spent) addSpent.run(scope, period, micro);
  const setUsed = database.prepare(SET_USED);
  for (const [key, at] of used) setUsed.run(key, Math.round(at));
  return new Set(fresh.map(({ id }) => id));
}

export function readSpent(database: DatabaseSync, periods: readonly string[]): Spent[] {
  const sql =
    "SELECT scope, period, micro FROM spent WHERE period IN (SELECT value FROM json_each(?))";
  return database.prepare(sql).all(JSON.stringify(periods)).map((row) => ({
    scope: String(row["scope"]),
    period: String(row["period"]),
    micro: Number(row["micro"]),
  }));
}

/** The statement that answers a question; its rows are for `usageAnswerOf`. */
export function usageStatement(question: UsageQuestion): Statement {
  const { columns, table, groups } = usageSelect(question);
  const { from, until, key, projects, model, limit } = question;
  const sql = `SELECT ${columns} FROM ${table} WHERE hour >= :from AND hour < :until
    AND (:key IS NULL OR key = :key) AND (:model IS NULL OR model = :model)
    AND (:projects IS NULL OR project IN (SELECT value FROM json_each(:projects)))
    ${groups} LIMIT :limit`;
  const values = {
    from,
    until,
    key: key ?? null,
    model: model ?? null,
    projects: projects === undefined ? null : JSON.stringify(projects),
    limit,
  };
  return { sql, values };
}

export function pruneUsage(database: DatabaseSync, retention: Retention): boolean {
  const { recordsFrom, hoursFrom, day, month } = retention;
  const changes = [
    database.prepare(
      "DELETE FROM usage_record WHERE rowid IN " +
        "(SELECT rowid FROM usage_record WHERE at < ? ORDER BY at LIMIT ?)",
    ).run(recordsFrom, PRUNE_ROWS),
    database.prepare(
      "DELETE FROM usage_hour WHERE (hour, key, project, model) IN " +
        "(SELECT hour, key, project, model FROM usage_hour WHERE hour < ? ORDER BY hour LIMIT ?)",
    ).run(hoursFrom, PRUNE_ROWS),
    database.prepare(
      "DELETE FROM usage_pool WHERE (hour, key, project, model, pool) IN (SELECT hour, key, " +
        "project, model, pool FROM usage_pool WHERE hour < ? ORDER BY hour LIMIT ?)",
    ).run(hoursFrom, PRUNE_ROWS),
    database.prepare(
      "DELETE FROM spent WHERE (period, scope) IN (SELECT period, scope FROM spent " +
        "WHERE period < ? OR (period >= 'm' AND period < ?) LIMIT ?)",
    ).run(day, month, PRUNE_ROWS),
  ];
  return changes.some((result) => Number(result.changes) === PRUNE_ROWS);
}
