/** The store in one SQLite file. Writes are small and rare, so each waits for the disk (FULL). */
import { DatabaseSync } from "node:sqlite";
import { errorText, HeddleError } from "@heddle/proto/error";
import type { Decisions } from "../../core/world.ts";
import { type DecisionRow, decisionRows, decisionsOf } from "./decision_rows.ts";
import type { AuditEntry, Store, Stored, StoredCatalog } from "./store.ts";
import { migrate } from "./migrations.ts";

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
    return new SqliteStore(openDatabase(path), lock);
  } catch (error) {
    lock.close();
    if (error instanceof HeddleError) throw error;
    throw new HeddleError("system", `Cannot open store ${path}: ${errorText(error)}`, {
      cause: error,
    });
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
    `Cannot open the store in ${directory}: another control uses it. Stop that one, or give each ` +
      "its own state_directory",
  );
}

function openDatabase(path: string): DatabaseSync {
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
  readonly #database: DatabaseSync;
  readonly #lock: Deno.FsFile;

  constructor(database: DatabaseSync, lock: Deno.FsFile) {
    this.#database = database;
    this.#lock = lock;
  }

  load(): Promise<Stored> {
    return this.#do("read", () => ({
      term: this.#term(),
      knownNodes: this.#knownNodes(),
      decisions: decisionsOf(this.#all("SELECT * FROM decision").map(decisionRowOf)),
      catalog: this.#all("SELECT * FROM catalog").map(catalogOf)[0],
    }));
  }

  saveTerm(term: number): Promise<void> {
    return this.#do("save the term", () => {
      const stored = this.#term();
      if (term < stored) {
        throw new HeddleError(
          "failed_precondition",
          `Cannot save term ${term}: the store already has ${stored}`,
        );
      }
      this.#run("INSERT OR REPLACE INTO term (id, term) VALUES (1, ?)", term);
    });
  }

  saveKnownNodes(names: ReadonlySet<string>): Promise<void> {
    return this.#do("save known nodes", () => {
      const stored = this.#knownNodes();
      for (const name of names.difference(stored)) {
        this.#run("INSERT INTO known_node VALUES (?)", name);
      }
      for (const name of stored.difference(names)) {
        this.#run("DELETE FROM known_node WHERE name = ?", name);
      }
    });
  }

  saveDecisions(decisions: Decisions, entry: AuditEntry): Promise<void> {
    return this.#do("save decisions", () => {
      this.#run("DELETE FROM decision");
      for (const { kind, subject, value } of decisionRows(decisions)) {
        this.#run("INSERT INTO decision VALUES (?, ?, ?)", kind, subject, value);
      }
      this.#audit(entry);
    });
  }

  saveCatalog(catalog: StoredCatalog, entry: AuditEntry): Promise<void> {
    return this.#do("save the catalog", () => {
      this.#run(
        "INSERT OR REPLACE INTO catalog VALUES (1, ?, ?, ?)",
        catalog.text,
        catalog.revision,
        catalog.appliedAtMs,
      );
      this.#audit(entry);
    });
  }

  audit(limit: number): Promise<readonly AuditEntry[]> {
    return this.#do(
      "read the audit trail",
      () => this.#all("SELECT * FROM audit ORDER BY id DESC LIMIT ?", limit).map(auditOf),
    );
  }

  close(): Promise<void> {
    this.#database.close();
    this.#lock.close();
    return Promise.resolve();
  }

  // One transaction around everything that must be there together. A promise, so that callers do
  // not come to depend on SQLite being synchronous.
  #do<T>(action: string, work: () => T): Promise<T> {
    try {
      this.#database.exec("BEGIN IMMEDIATE");
      try {
        const result = work();
        this.#database.exec("COMMIT");
        return Promise.resolve(result);
      } catch (error) {
        if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
        throw error;
      }
    } catch (error) {
      if (error instanceof HeddleError) return Promise.reject(error);
      const text = `Cannot ${action} in the store: ${errorText(error)}`;
      return Promise.reject(new HeddleError("system", text, { cause: error }));
    }
  }

  #term(): number {
    return Number(this.#all("SELECT term FROM term")[0]?.["term"] ?? 0);
  }

  #knownNodes(): Set<string> {
    return new Set(this.#all("SELECT name FROM known_node").map((row) => String(row["name"])));
  }

  #audit(entry: AuditEntry): void {
    this.#run(
      "INSERT INTO audit (at_ms, who, what, target, reason) VALUES (?, ?, ?, ?, ?)",
      entry.atMs,
      entry.who,
      entry.what,
      entry.target,
      entry.reason,
    );
  }

  #all(sql: string, ...values: (string | number)[]): Row[] {
    return this.#database.prepare(sql).all(...values);
  }

  #run(sql: string, ...values: (string | number)[]): void {
    this.#database.prepare(sql).run(...values);
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
  return {
    text: String(row["text"]),
    revision: Number(row["revision"]),
    appliedAtMs: Number(row["applied_at_ms"]),
  };
}

function auditOf(row: Row): AuditEntry {
  return {
    atMs: Number(row["at_ms"]),
    who: String(row["who"]),
    what: String(row["what"]),
    target: String(row["target"]),
    reason: String(row["reason"]),
  };
}
