/**
 * The store in one SQLite file, for one control: a lock on its folder keeps a second one away, so
 * the lease is whoever has the file open. Writes are small and rare, so each waits for the disk (FULL).
 */
import { DatabaseSync } from "node:sqlite";
import { errorText, HeddleError } from "@heddle/proto/error";
import type { Claim, ClaimAnswer } from "../../core/lease/claim.ts";
import type { StoredMeasurement } from "../../core/capacity/measurement.ts";
import type { Audit, StoreRecord } from "../../core/store_record.ts";
import type { Spent, UsageAnswer, UsageEntry, UsageQuestion } from "../../core/usage/rollup.ts";
import { type DecisionRow, decisionsOf } from "./decision_rows.ts";
import { failuresOf } from "./failure_rows.ts";
import { measurementsOf } from "./measurement_rows.ts";
import { migrate } from "./migrations.ts";
import { backupOf, prepareBackup, receiveBackup } from "./sqlite/backup.ts";
import { pruneUsage, readSpent, readTenancy, usageStatement, writeUsage } from "./sqlite/ledger.ts";
import { readTerm, writeRecord, writeTerm } from "./sqlite/records.ts";
import { SqliteWorker } from "./sqlite/worker.ts";
import type {
  Retention,
  SeenCatalogFile,
  Store,
  Stored,
  StoredCatalog,
  StoredTenancy,
} from "./store.ts";
import { changeOf, usageAnswerOf } from "./usage_sql.ts";

/** How long a write waits for another connection, e.g. a backup, before it is an error. */
const BUSY_TIMEOUT_MS = 5_000;

/**
 * Opens, and if needed creates, `control.db` in `directory`. Throws `failed_precondition` when
 * another control uses it or its schema is newer, `system` when the folder cannot be used.
 */
export async function openSqliteStore(directory: string): Promise<Store> {
  const path = `${directory}/control.db`;
  const lock = await lockDirectory(directory);
  try {
    return new SqliteStore(path, openDatabase(path), lock);
  } catch (error) {
    lock.close();
    if (error instanceof HeddleError) throw error;
    throw new HeddleError(
      "system",
      `Cannot open store ${path}: ${
        errorText(error)
      }. Restore it from a backup, or move it away: ` +
        "what runs is found again, but cordons and other decisions are forgotten",
      { cause: error },
    );
  }
}

// Two controls on one store would both lead. The system frees the lock when a process ends.
async function lockDirectory(directory: string): Promise<Deno.FsFile> {
  const path = `${directory}/control.lock`;
  let file: Deno.FsFile | undefined;
  try {
    await Deno.mkdir(directory, { recursive: true, mode: 0o700 });
    file = await Deno.open(path, { create: true, write: true, mode: 0o600 });
    if (await file.tryLock(true)) return file;
  } catch (error) {
    file?.close();
    throw new HeddleError(
      "system",
      `Cannot use state_directory ${directory}: ${errorText(error)}`,
      {
        cause: error,
      },
    );
  }
  file.close();
  throw new HeddleError(
    "failed_precondition",
    `Cannot open the store in ${directory}: another control uses it. Stop that one, or let both ` +
      "use store.postgres",
  );
}

function openDatabase(path: string): DatabaseSync {
  // Made here so that it, and the files that SQLite puts beside it, are nobody else's to read.
  Deno.openSync(path, { create: true, write: true, mode: 0o600 }).close();
  const database = new DatabaseSync(path);
  try {
    database.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    database.exec("PRAGMA journal_mode = WAL");
    database.exec("PRAGMA synchronous = FULL");
    migrate(database, path);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

class SqliteStore implements Store {
  readonly #path: string;
  readonly #database: DatabaseSync;
  readonly #worker = new SqliteWorker();
  readonly #lock: Deno.FsFile;
  /** Of the claim that was granted last; undefined while nobody leads here. */
  #held: { readonly holder: string; readonly epoch: number } | undefined;
  #epochs = 0;
  #restoring = false;

  constructor(path: string, database: DatabaseSync, lock: Deno.FsFile) {
    this.#path = path;
    this.#database = database;
    this.#lock = lock;
  }

  // deno-lint-ignore require-await -- a store on disk answers at once, by failing too
  async claim({ holder }: Claim): Promise<ClaimAnswer> {
    if (this.#restoring) {
      throw new HeddleError("system", "Cannot use the store: it is being restored");
    }
    if (this.#held?.holder !== holder) {
      this.#do("write", () => writeTerm(this.#database, readTerm(this.#database) + 1));
      this.#held = { holder, epoch: ++this.#epochs };
    }
    const { epoch } = this.#held;
    return {
      kind: "granted",
      epoch,
      term: this.#do("read", () => readTerm(this.#database)),
      validMs: Infinity,
    };
  }

  release(): Promise<void> {
    this.#held = undefined;
    return Promise.resolve();
  }

  // deno-lint-ignore require-await -- as above
  async load(): Promise<Stored> {
    return this.#do("read", () => ({
      knownNodes: new Set(
        this.#all("SELECT name FROM known_node").map((row) => String(row["name"])),
      ),
      decisions: decisionsOf(this.#all("SELECT * FROM decision").map(decisionRowOf)),
      failures: failuresOf(this.#all("SELECT * FROM failures")),
      catalog: this.#all("SELECT * FROM catalog").map(catalogOf)[0],
      appliedCatalogs: new Set(
        this.#all("SELECT hash FROM applied_catalog").map((row) => String(row["hash"])),
      ),
      catalogFile: this.#all("SELECT * FROM catalog_file").map(catalogFileOf)[0],
    }));
  }

  // deno-lint-ignore require-await -- as above
  async struck(): Promise<Stored["decisions"]["struck"]> {
    const rows = () => this.#all("SELECT * FROM decision WHERE kind = 'strike'");
    return this.#do("read", () => decisionsOf(rows().map(decisionRowOf)).struck);
  }

  // deno-lint-ignore require-await -- as above
  async persist(records: readonly StoreRecord[]): Promise<void> {
    this.#demandLead();
    if (records.length === 0) return;
    this.#do("write", () => records.forEach((record) => writeRecord(this.#database, record)));
  }

  // deno-lint-ignore require-await -- as above
  async audit(limit: number): Promise<readonly Audit[]> {
    return this.#do(
      "read the audit trail",
      () => this.#all("SELECT * FROM audit ORDER BY id DESC LIMIT ?", limit).map(auditOf),
    );
  }

  // deno-lint-ignore require-await -- as above
  async measurements(): Promise<readonly StoredMeasurement[]> {
    const rows = this.#do(
      "read",
      () => this.#all("SELECT value FROM measurement ORDER BY at DESC"),
    );
    return measurementsOf(rows.map((row) => String(row["value"])));
  }

  // deno-lint-ignore require-await -- as above
  async loadTenancy(): Promise<StoredTenancy> {
    return this.#do("read", () => readTenancy(this.#database));
  }

  // deno-lint-ignore require-await -- as above
  async recordUsage(
    entries: readonly UsageEntry[],
    used: ReadonlyMap<string, number>,
  ): Promise<ReadonlySet<string>> {
    this.#demandLead();
    return this.#do("write", () => writeUsage(this.#database, entries, used));
  }

  // deno-lint-ignore require-await -- as above
  async spent(periods: readonly string[]): Promise<readonly Spent[]> {
    return this.#do("read", () => readSpent(this.#database, periods));
  }

  async usage(question: UsageQuestion): Promise<readonly UsageAnswer[]> {
    return (await this.#worker.all(this.#path, usageStatement(question))).map(usageAnswerOf);
  }

  // deno-lint-ignore require-await -- as above
  async prune(retention: Retention): Promise<boolean> {
    this.#demandLead();
    return this.#do("write", () => pruneUsage(this.#database, retention));
  }

  backup(): AsyncIterable<Uint8Array<ArrayBuffer>> {
    return backupOf(this.#path, this.#worker);
  }

  async restore(pieces: AsyncIterable<Uint8Array>): Promise<void> {
    this.#demandLead();
    await receiveBackup(this.#path, pieces, async (file) => {
      this.#demandLead();
      await prepareBackup(file, this.#do("read", () => readTerm(this.#database)), this.#worker);
      // Nothing is written from here on until somebody leads anew, with what is there then.
      this.#held = undefined;
      this.#restoring = true;
      try {
        await this.#worker.copy(file, this.#path);
      } finally {
        this.#restoring = false;
      }
    });
  }

  close(): Promise<void> {
    this.#worker.close();
    this.#database.close();
    this.#lock.close();
    return Promise.resolve();
  }

  #demandLead(): void {
    if (this.#held !== undefined) return;
    throw new HeddleError(
      "failed_precondition",
      "Cannot write in the store: this control does not lead",
    );
  }

  // One transaction around everything that must be there together.
  #do<T>(action: string, work: () => T): T {
    try {
      this.#database.exec("BEGIN IMMEDIATE");
      try {
        const result = work();
        this.#database.exec("COMMIT");
        return result;
      } catch (error) {
        if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
        throw error;
      }
    } catch (error) {
      if (error instanceof HeddleError) throw error;
      const text = `Cannot ${action} in the store: ${errorText(error)}`;
      throw new HeddleError("system", text, { cause: error });
    }
  }

  #all(sql: string, ...values: (string | number)[]): Row[] {
    return this.#database.prepare(sql).all(...values);
  }
}

type Row = Record<string, unknown>;

function decisionRowOf(row: Row): DecisionRow {
  return {
    kind: String(row["kind"]),
    subject: String(row["subject"]),
    value: String(row["value"]),
  };
}

function catalogOf(row: Row): StoredCatalog {
  return { text: String(row["text"]), revision: Number(row["revision"]) };
}

function catalogFileOf(row: Row): SeenCatalogFile {
  return { control: String(row["control"]), hash: String(row["hash"]) };
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
