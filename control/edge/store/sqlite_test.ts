import { equal, match, rejects } from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { lead, testStoreContract } from "./contract.ts";
import { openSqliteStore } from "./sqlite.ts";

async function place() {
  const directory = await Deno.makeTempDir();
  return {
    directory,
    open: () => openSqliteStore(`${directory}/made/when/needed`),
    [Symbol.asyncDispose]: () => Deno.remove(directory, { recursive: true }),
  };
}

testStoreContract("SqliteStore", place);

Deno.test("openSqliteStore() refuses a folder that another control uses, until that one is gone", async () => {
  await using fresh = await place();
  const first = await fresh.open();
  try {
    await rejects(fresh.open(), /another control uses it/);
  } finally {
    await first.close();
  }
  await (await fresh.open()).close();
});

Deno.test("openSqliteStore() refuses a newer schema and leaves it as it is", async () => {
  await using fresh = await place();
  const file = `${fresh.directory}/control.db`;
  const database = new DatabaseSync(file);
  database.exec("PRAGMA user_version = 99");
  database.close();
  await rejects(openSqliteStore(fresh.directory), /its schema is 99, this control knows up to \d+/);
  const again = new DatabaseSync(file);
  equal(again.prepare("PRAGMA user_version").get()?.["user_version"], 99);
  equal(again.prepare("SELECT count(*) AS n FROM sqlite_schema").get()?.["n"], 0);
  again.close();
});

Deno.test("openSqliteStore() says what it cannot use, and frees what it took", async () => {
  await using fresh = await place();
  await Deno.writeTextFile(`${fresh.directory}/control.db`, "this is no database".repeat(300));
  for (let attempt = 0; attempt < 2; attempt++) {
    await rejects(openSqliteStore(fresh.directory), /Cannot open store .*control.db: file is not/);
  }
  await Deno.writeTextFile(`${fresh.directory}/file`, "");
  await rejects(openSqliteStore(`${fresh.directory}/file`), /Cannot use state_directory/);
});

Deno.test("SqliteStore can be read by a backup while control holds it", async () => {
  await using fresh = await place();
  const store = await openSqliteStore(fresh.directory);
  await lead(store);
  const database = new DatabaseSync(`${fresh.directory}/control.db`, { readOnly: true });
  match(String(database.prepare("PRAGMA journal_mode").get()?.["journal_mode"]), /wal/);
  database.close();
  await store.close();
});

Deno.test("SqliteStore refuses decisions that a newer control wrote, rather than undo them", async () => {
  await using fresh = await place();
  await (await openSqliteStore(fresh.directory)).close();
  for (const row of ["'quota', 'm1', '{}'", `'node_decision', 'n1', '{"kind":"evacuate"}'`]) {
    const database = new DatabaseSync(`${fresh.directory}/control.db`);
    database.exec(`DELETE FROM decision; INSERT INTO decision VALUES (${row})`);
    database.close();
    const store = await openSqliteStore(fresh.directory);
    await rejects(store.load(), /Cannot read the stored decision .*written by a newer control/s);
    await store.close();
  }
});
