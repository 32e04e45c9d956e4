/**
 * The store in PostgreSQL, for several controls of which one leads. The lease ends by the database's
 * clock; every write names the epoch that it belongs to, so that what a deposed control still sends
 * changes nothing.
 */
import type { Row, TransactionSql } from "postgres";
import { HeddleError } from "@heddle/proto/error";
import {
  type Claim,
  type ClaimAnswer,
  type Held,
  judgeClaim,
  type LeaseRow,
} from "../../../core/lease/claim.ts";
import type { StoredMeasurement } from "../../../core/capacity/measurement.ts";
import type { Audit, StoreRecord } from "../../../core/store_record.ts";
import { type DecisionRow, decisionsOf } from "../decision_rows.ts";
import { failuresOf } from "../failure_rows.ts";
import { measurementsOf } from "../measurement_rows.ts";
import type { TenancyRow } from "../../../core/tenancy/stored.ts";
import type { Spent, UsageAnswer, UsageEntry, UsageQuestion } from "../../../core/usage/rollup.ts";
import type { Retention, Store, Stored, StoredTenancy } from "../store.ts";
import { changeOf } from "../usage_sql.ts";
import {
  PAGE_ROWS,
  pruneUsage,
  readSpent,
  readTenancyPage,
  readUsage,
  readUsed,
  writeUsage,
} from "./ledger.ts";
import { writeRecord } from "./records.ts";
import { migrate } from "./schema.ts";
import { PostgresSession, type PostgresSettings } from "./session.ts";

/** Opens nothing yet: a database that is away must not keep control from starting to wait for it. */
export function openPostgresStore(settings: PostgresSettings): Store {
  return new PostgresStore(new PostgresSession(settings), new PostgresSession(settings));
}

class PostgresStore implements Store {
  readonly #session: PostgresSession;
  /** For what takes long: the lease must not wait for it. */
  readonly #reader: PostgresSession;
  #migrated = false;
  #held: Held | undefined;

  constructor(session: PostgresSession, reader: PostgresSession) {
    this.#session = session;
    this.#reader = reader;
  }

  async claim(claim: Claim): Promise<ClaimAnswer> {
    const { holder, leaseMs } = claim;
    await this.#migrate();
    const { answer } = await this.#session.transaction("claim the lease", async (sql) => {
      const mine = this.#held ?? { holder, epoch: 0, writes: 0 };
      await sql`SELECT FROM lease FOR UPDATE`;
      // Asked again under the lock: waiting for it takes time.
      const [found] = await sql`
        SELECT holder, name, address, epoch, writes, (SELECT term FROM term) AS term,
          extract(epoch FROM ends_at - clock_timestamp())::float8 * 1000 AS remaining_ms
        FROM lease`;
      const row = leaseRowOf(found);
      const verdict = judgeClaim(row, mine);
      if (verdict === "held") return { answer: heldBy(found, row), held: undefined };
      const taken = verdict === "take"
        ? await takeLease(sql, claim, row)
        : { epoch: row.epoch, term: Number(found?.["term"]) };
      await sql`
        UPDATE lease SET ends_at = clock_timestamp() + ${leaseMs}::float8 * interval '1 ms'`;
      const answer: ClaimAnswer = { kind: "granted", ...taken, validMs: leaseMs };
      const writes = verdict === "take" ? 0 : row.writes;
      return { answer, held: { holder, epoch: taken.epoch, writes } };
    }, ({ held }) => this.#held = held);
    return answer;
  }

  async release(): Promise<void> {
    const held = this.#held;
    this.#held = undefined;
    if (held === undefined) return;
    const { holder, epoch } = held;
    await this.#session.transaction("give back the lease", async (sql) => {
      await sql`
        UPDATE lease SET ends_at = clock_timestamp(), holder = ''
        WHERE holder = ${holder} AND epoch = ${epoch}`;
    });
  }

  load(): Promise<Stored> {
    return this.#session.transaction("read", async (sql) => {
      await sql`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY`;
      const [catalog] = await sql`SELECT text, revision FROM catalog`;
      const [file] = await sql`SELECT control, hash FROM catalog_file`;
      const text = (row: Row, name: string) => String(row[name]);
      return {
        knownNodes: new Set((await sql`SELECT name FROM known_node`).map((r) => text(r, "name"))),
        decisions: decisionsOf(
          (await sql`SELECT kind, subject, value FROM decision`).map(decisionRowOf),
        ),
        failures: failuresOf(await sql`SELECT model, value FROM failures`),
        catalog: catalog && { text: text(catalog, "text"), revision: Number(catalog["revision"]) },
        appliedCatalogs: new Set(
          (await sql`SELECT hash FROM applied_catalog`).map((row) => text(row, "hash")),
        ),
        catalogFile: file && { control: text(file, "control"), hash: text(file, "hash") },
      };
    });
  }

  struck(): Promise<Stored["decisions"]["struck"]> {
    return this.#reader.transaction("read what was struck", async (sql) => {
      const rows = await sql`SELECT kind, subject, value FROM decision WHERE kind = 'strike'`;
      return decisionsOf(rows.map(decisionRowOf)).struck;
    });
  }

  async persist(records: readonly StoreRecord[]): Promise<void> {
    // Counted only once it is sure: a write whose fate is unknown ends the epoch if it arrived.
    const count = (held: Held) => {
      if (this.#held?.epoch === held.epoch) this.#held = held;
    };
    const epoch = this.#held?.epoch;
    await this.#session.transaction("write", async (sql) => {
      const held = this.#held;
      // What was decided in one epoch is not written in another.
      if (held === undefined || held.epoch !== epoch) throw leadsNoMore();
      if (records.length === 0) return held;
      const { holder, writes } = held;
      const { count } = await sql`
        UPDATE lease SET writes = writes + 1
        WHERE holder = ${holder} AND epoch = ${epoch} AND writes = ${writes}`;
      if (count !== 1) throw leadsNoMore();
      for (const record of records) await writeRecord(sql, record);
      return { ...held, writes: writes + 1 };
    }, count);
  }

  audit(limit: number): Promise<readonly Audit[]> {
    return this.#session.transaction("read the audit trail", async (sql) => {
      const rows = await sql`
        SELECT at, by, action, subject, reason, before, after FROM audit ORDER BY id DESC LIMIT ${limit}`;
      return rows.map(auditOf);
    });
  }

  async measurements(): Promise<readonly StoredMeasurement[]> {
    const rows = await this.#session.transaction(
      "read",
      (sql) => sql`SELECT value FROM measurement ORDER BY at DESC`,
    );
    return measurementsOf(rows.map((row) => String(row["value"])));
  }

  async loadTenancy(): Promise<StoredTenancy> {
    const rows: TenancyRow[] = [];
    for (let page = PAGE_ROWS; page === PAGE_ROWS;) {
      const after = rows.at(-1) ?? { kind: "", id: "" };
      const next = await this.#session.transaction("read", (sql) => readTenancyPage(sql, after));
      rows.push(...next);
      page = next.length;
    }
    const used: (readonly [string, number])[] = [];
    for (let page = PAGE_ROWS; page === PAGE_ROWS;) {
      const after = used.at(-1)?.[0] ?? "";
      const next = await this.#session.transaction("read", (sql) => readUsed(sql, after));
      used.push(...next);
      page = next.length;
    }
    return { rows, used: new Map(used) };
  }

  recordUsage(
    entries: readonly UsageEntry[],
    used: ReadonlyMap<string, number>,
  ): Promise<ReadonlySet<string>> {
    return this.#fenced("write usage", (sql) => writeUsage(sql, entries, used));
  }

  spent(periods: readonly string[]): Promise<readonly Spent[]> {
    return this.#session.transaction("read", (sql) => readSpent(sql, periods));
  }

  usage(question: UsageQuestion): Promise<readonly UsageAnswer[]> {
    return this.#reader.transaction("read usage", (sql) => readUsage(sql, question));
  }

  prune(retention: Retention): Promise<boolean> {
    return this.#fenced("forget old usage", (sql) => pruneUsage(sql, retention));
  }

  backup(): never {
    throw new HeddleError(
      "failed_precondition",
      "Cannot back up PostgreSQL through control: use pg_dump --schema heddle",
    );
  }

  restore(): never {
    throw new HeddleError(
      "failed_precondition",
      "Cannot restore PostgreSQL through control: stop every control and use pg_restore or psql",
    );
  }

  async close(): Promise<void> {
    await Promise.all([this.#session.close(), this.#reader.close()]);
  }

  // Written only by who leads. Unlike a decision it may be written twice, so it ends no epoch when
  // its fate is unknown.
  #fenced<T>(action: string, work: (sql: TransactionSql) => Promise<T>): Promise<T> {
    const epoch = this.#held?.epoch;
    return this.#session.transaction(action, async (sql) => {
      const held = this.#held;
      if (held === undefined || held.epoch !== epoch) throw leadsNoMore();
      const found = await sql`
        SELECT FROM lease WHERE holder = ${held.holder} AND epoch = ${epoch} FOR SHARE`;
      if (found.count !== 1) throw leadsNoMore();
      return await work(sql);
    });
  }

  async #migrate(): Promise<void> {
    if (this.#migrated) return;
    await this.#session.transaction("bring the schema up to date", migrate);
    this.#migrated = true;
  }
}

async function takeLease(
  sql: TransactionSql,
  { holder, name, address }: Claim,
  row: LeaseRow,
): Promise<{ epoch: number; term: number }> {
  const epoch = row.epoch + 1;
  await sql`
    UPDATE lease SET holder = ${holder}, name = ${name}, address = ${address},
      epoch = ${epoch}, writes = 0`;
  const [next] = await sql`UPDATE term SET term = term + 1 RETURNING term`;
  return { epoch, term: Number(next?.["term"]) };
}

function leaseRowOf(row: Row | undefined): LeaseRow {
  return {
    holder: String(row?.["holder"]),
    epoch: Number(row?.["epoch"]),
    writes: Number(row?.["writes"]),
    remainingMs: Number(row?.["remaining_ms"]),
  };
}

function decisionRowOf(row: Row): DecisionRow {
  const text = (name: string) => String(row[name]);
  return { kind: text("kind"), subject: text("subject"), value: text("value") };
}

function heldBy(row: Row | undefined, { remainingMs }: LeaseRow): ClaimAnswer {
  const by = {
    name: String(row?.["name"]),
    address: String(row?.["address"]),
    term: Number(row?.["term"]),
  };
  return { kind: "held", by, remainingMs };
}

function auditOf(row: Row): Audit {
  return {
    kind: "audit",
    at: Number(row["at"]),
    by: String(row["by"]),
    action: String(row["action"]),
    subject: String(row["subject"]),
    reason: String(row["reason"]),
    ...changeOf(row),
  };
}

function leadsNoMore(): HeddleError {
  return new HeddleError(
    "failed_precondition",
    "Cannot write in the store: this control does not lead, or the store is not as it left it",
  );
}
