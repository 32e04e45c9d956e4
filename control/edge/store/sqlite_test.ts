import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { lead, testStoreContract } from "./contract.ts";
import { openSqliteStore } from "./sqlite.ts";
import { testUsageContract } from "./usage_contract.ts";

async function place() {
  const directory = await Deno.makeTempDir();
  return {
    directory,
    open: () => openSqliteStore(`${directory}/made/when/needed`),
    [Symbol.asyncDispose]: () => Deno.remove(directory, { recursive: true }),
  };
}

testStoreContract("SqliteStore", place);
testUsageContract("SqliteStore", place);

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

const wanted = { kind: "price", id: "m1", value: { basis: "request", micro: 1 } } as const;
const unwanted = { kind: "price", id: "m2", value: { basis: "request", micro: 2 } } as const;

Deno.test("SqliteStore backs up while it is written to, and restores all of it but the term", async () => {
  await using fresh = await place();
  const store = await openSqliteStore(fresh.directory);
  await lead(store);
  await store.persist([wanted]);
  const pieces = await Array.fromAsync(store.backup());
  await store.persist([unwanted]);
  const term = await lead(store);
  await store.restore(ReadableStream.from(pieces));
  deepEqual((await store.loadTenancy()).rows.map(({ id }) => id), ["m1"]);
  await rejects(store.persist([unwanted]), /does not lead/, "what it decided is of the past");
  ok(await lead(store) > term);
  await store.persist([unwanted]);
  await store.close();
  deepEqual(await left(fresh.directory), ["control.db", "control.lock"]);
  const again = await openSqliteStore(fresh.directory);
  equal((await again.loadTenancy()).rows.length, 2);
  await again.close();
});

Deno.test("SqliteStore restores nothing from what is no backup, and goes on", async () => {
  await using fresh = await place();
  const store = await openSqliteStore(fresh.directory);
  await lead(store);
  await store.persist([wanted]);
  const [newer, other] = [`${fresh.directory}/newer.db`, `${fresh.directory}/other.db`];
  for (const [file, sql] of [[newer, "PRAGMA user_version = 99"], [other, ""]] as const) {
    const database = new DatabaseSync(file);
    database.exec("CREATE TABLE term (a); CREATE TABLE known_node (a); CREATE TABLE decision (a)");
    if (file === newer) database.exec("CREATE TABLE catalog (a); CREATE TABLE audit (a)");
    database.exec(sql);
    database.close();
  }
  const cases: readonly (readonly [Uint8Array<ArrayBuffer>[], RegExp])[] = [
    [[], /no backup of a store/],
    [[new TextEncoder().encode("no database".repeat(1_000))], /no backup of a store/],
    [[await Deno.readFile(other)], /no backup of a store, it is another file/],
    [[await Deno.readFile(newer)], /its schema is 99/],
    [
      (await Array.fromAsync(store.backup())).slice(0, 1).map((piece) => piece.slice(0, 20_000)),
      /./,
    ],
  ];
  for (const [pieces, complaint] of cases) {
    await rejects(store.restore(ReadableStream.from(pieces)), complaint);
    await store.persist([wanted]);
  }
  deepEqual((await store.loadTenancy()).rows.map(({ id }) => id), ["m1"]);
  await store.close();
  deepEqual(await left(fresh.directory), ["control.db", "control.lock", "newer.db", "other.db"]);
});

Deno.test("SqliteStore answers a question about usage while control goes on", async () => {
  await using fresh = await place();
  const store = await openSqliteStore(fresh.directory);
  await lead(store);
  const answer = store.usage({ by: [], from: 0, until: 1, limit: 1 });
  await store.persist([wanted]);
  equal((await answer).length, 1);
  const late = store.usage({ by: [], from: 0, until: 1, limit: 1 });
  const closed = rejects(late, /closed/);
  await store.close();
  await closed;
});

async function left(directory: string): Promise<string[]> {
  const names = await Array.fromAsync(Deno.readDir(directory), ({ name }) => name);
  return names.filter((name) => !/-(?:wal|shm)$/.test(name)).sort();
}

/** Takes a store back to what a control of schema 2 left. */
const TO_SCHEMA_2 = `
  DROP TABLE tenancy; DROP TABLE key_used; DROP TABLE usage_record; DROP TABLE usage_hour;
  DROP TABLE spent; DROP TABLE measurement; DROP TABLE usage_pool; DROP TABLE failures;
  ALTER TABLE audit DROP COLUMN before; ALTER TABLE audit DROP COLUMN after;
  PRAGMA user_version = 2;
`;
const cordoned = {
  kind: "audit",
  at: 1,
  by: "ann",
  action: "cordon",
  subject: "n1",
  reason: "",
} as const;

Deno.test("openSqliteStore() brings an older schema up to date, and keeps what was in it", async () => {
  await using fresh = await olderStore();
  const store = await openSqliteStore(fresh.directory);
  await lead(store);
  deepEqual(await store.audit(10), [cordoned]);
  await store.persist([wanted]);
  equal((await store.loadTenancy()).rows.length, 1);
  await store.close();
});

Deno.test("openSqliteStore() goes on with no migration that was half done: all of it, or none", async () => {
  await using fresh = await olderStore();
  const file = `${fresh.directory}/control.db`;
  const broken = new DatabaseSync(file);
  broken.exec("CREATE TABLE usage_hour (what TEXT)");
  broken.close();
  for (let attempt = 0; attempt < 2; attempt++) {
    await rejects(openSqliteStore(fresh.directory), /usage_hour already exists/);
  }
  const left = new DatabaseSync(file);
  equal(left.prepare("PRAGMA user_version").get()?.["user_version"], 2);
  equal(
    left.prepare("SELECT count(*) AS n FROM sqlite_schema WHERE name = 'tenancy'").get()?.["n"],
    0,
  );
  left.exec("DROP TABLE usage_hour");
  left.close();
  await (await openSqliteStore(fresh.directory)).close();
});

async function olderStore() {
  const fresh = await place();
  const store = await openSqliteStore(fresh.directory);
  await lead(store);
  await store.persist([cordoned]);
  await store.close();
  const older = new DatabaseSync(`${fresh.directory}/control.db`);
  older.exec(TO_SCHEMA_2);
  older.close();
  return fresh;
}
