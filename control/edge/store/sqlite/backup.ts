/**
 * The whole store as a file, and back. A backup is a copy that SQLite makes while everything goes on;
 * a restore is the same copy the other way, after the file has been looked at and brought to today's
 * schema. The term only ever rises: agents would not obey a control from the past.
 */
import { DatabaseSync } from "node:sqlite";
import { errorText, HeddleError } from "@heddle/proto/error";
import { migrate, MIGRATED_TABLES } from "../migrations.ts";
import type { SqliteWorker } from "./worker.ts";

/** Bytes of a backup in one message. */
const CHUNK_BYTES = 64 * 1_024;

/** A copy of the database at `path`, in pieces. Throws `system`. */
export async function* backupOf(
  path: string,
  worker: SqliteWorker,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const copy = temporary(path, "backup");
  try {
    await worker.copy(path, copy);
    const file = await Deno.open(copy);
    try {
      const buffer = new Uint8Array(CHUNK_BYTES);
      for (let read = await file.read(buffer); read !== null; read = await file.read(buffer)) {
        yield buffer.slice(0, read);
      }
    } finally {
      file.close();
    }
  } catch (error) {
    if (error instanceof HeddleError) throw error;
    throw new HeddleError("system", `Cannot back up ${path}: ${errorText(error)}`, {
      cause: error,
    });
  } finally {
    await removeDatabase(copy);
  }
}

/** Writes the pieces to a file beside `path` and looks at it. The caller removes it, also after. */
export async function receiveBackup(
  path: string,
  pieces: AsyncIterable<Uint8Array>,
  use: (file: string) => Promise<void>,
): Promise<void> {
  const file = temporary(path, "restore");
  try {
    await writePieces(file, pieces);
    await use(file);
  } finally {
    await removeDatabase(file);
  }
}

async function writePieces(path: string, pieces: AsyncIterable<Uint8Array>): Promise<void> {
  try {
    const file = await Deno.open(path, { createNew: true, write: true, mode: 0o600 });
    try {
      for await (const piece of pieces) {
        for (let rest = piece; rest.length > 0;) rest = rest.subarray(await file.write(rest));
      }
    } finally {
      file.close();
    }
  } catch (error) {
    if (error instanceof HeddleError) throw error;
    throw new HeddleError("system", `Cannot keep the backup in ${path}: ${errorText(error)}`, {
      cause: error,
    });
  }
}

/**
 * Brings a received backup to today's schema, and its term to at least `term`. Throws
 * `invalid_input` for what is none, `failed_precondition` for that of a newer control.
 */
export async function prepareBackup(
  file: string,
  term: number,
  worker: SqliteWorker,
): Promise<void> {
  try {
    const [check] = await worker.all(file, { sql: "PRAGMA quick_check(1)", values: {} });
    if (check?.["quick_check"] !== "ok") {
      throw new Error(`it is damaged: ${check?.["quick_check"]}`);
    }
    const database = new DatabaseSync(file);
    try {
      const tables = new Set(
        database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all()
          .map((row) => String(row["name"])),
      );
      if (!MIGRATED_TABLES.every((name) => tables.has(name))) throw new Error("it is another file");
      migrate(database, "in the backup");
      database.prepare("UPDATE term SET term = max(term, ?)").run(term);
      database.prepare("INSERT OR IGNORE INTO term VALUES (1, ?)").run(term);
    } finally {
      database.close();
    }
  } catch (error) {
    if (error instanceof HeddleError && error.code === "failed_precondition") throw error;
    throw new HeddleError(
      "invalid_input",
      `Cannot restore: what was sent is no backup of a store, ${errorText(error)}`,
      { cause: error },
    );
  }
}

function temporary(path: string, what: string): string {
  return `${path}.${what}-${crypto.randomUUID()}`;
}

// With what SQLite puts beside a database.
async function removeDatabase(path: string): Promise<void> {
  for (const suffix of ["", "-wal", "-shm", "-journal"]) {
    try {
      await Deno.remove(`${path}${suffix}`);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
  }
}
