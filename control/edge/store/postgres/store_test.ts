/** PostgreSQL's store against a real server. */
import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import postgres from "postgres";
import { createLeaf, createRoot } from "@heddle/common/pki";
import type { ClaimAnswer } from "../../../core/lease/claim.ts";
import type { Audit } from "../../../core/store_record.ts";
import { lead, newClaim, type StorePlace, testStoreContract, withStore } from "../contract.ts";
import type { Store } from "../store.ts";
import { testUsageContract } from "../usage_contract.ts";
import { NO_POSTGRES, postgresBinaries, PostgresServer } from "./server_fake.ts";
import type { PostgresSettings } from "./session.ts";
import { openPostgresStore } from "./store.ts";

const HOUR_MS = 3_600_000;
const ignore = postgresBinaries() === undefined;
const test = (name: string, fn: () => Promise<void>) =>
  Deno.test({ name: ignore ? `${name} (${NO_POSTGRES})` : name, ignore, fn });
const audit: Audit = {
  kind: "audit",
  at: 5,
  by: "ann",
  action: "cordon",
  subject: "n1",
  reason: "",
};

/** One server, with a database for each test. */
let shared: PostgresServer | undefined;
Deno.test.beforeAll(async () => {
  if (!ignore) shared = await PostgresServer.start();
});
Deno.test.afterAll(async () => {
  await shared?.[Symbol.asyncDispose]();
});

interface Database extends StorePlace {
  readonly settings: PostgresSettings;
  /** Runs statements beside the stores, as a person would with psql. */
  sql(text: string): Promise<readonly Record<string, unknown>[]>;
}

async function database(): Promise<Database> {
  if (shared === undefined) throw new Error("the server does not run");
  const name = `d${crypto.randomUUID().replaceAll("-", "")}`;
  const settings = { ...shared.settings, database: name };
  await statement(shared.settings, `CREATE DATABASE ${name}`);
  return {
    settings,
    open: () => Promise.resolve(openPostgresStore(settings)),
    sql: (text) => statement(settings, text),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

async function statement({ address, database, user }: PostgresSettings, text: string) {
  const { host, port } = address;
  const sql = postgres({ host, port, database, user, max: 1, fetch_types: false });
  try {
    return await sql.unsafe(text);
  } finally {
    await sql.end({ timeout: 1 });
  }
}

testStoreContract("PostgresStore", database, test);
testUsageContract("PostgresStore", database, test);

/** With two controls' stores on one database. */
async function withTwo(work: (a: Store, b: Store, on: Database) => Promise<void>): Promise<void> {
  await using on = await database();
  await withStore(on, (a) => withStore(on, (b) => work(a, b, on)));
}

test("PostgresStore tells a second control who leads, and for how long by its own clock", () =>
  withTwo(async (a, b) => {
    equal(await lead(a, newClaim("a")), 1);
    const answer = await b.claim(newClaim("b"));
    ok(answer.kind === "held");
    deepEqual(answer.by, { name: "a", address: "a.lab:9090", term: 1 });
    ok(answer.remainingMs > 50_000 && answer.remainingMs <= 60_000, `${answer.remainingMs}`);
  }));

test("PostgresStore gives an ended lease to the next, in a higher term, and refuses the one before", () =>
  withTwo(async (a, b, on) => {
    const [first, second] = [newClaim("a"), newClaim("b")];
    await lead(a, first);
    await a.persist([audit]);
    await on.sql("UPDATE heddle.lease SET ends_at = now() - interval '1 s'");
    const taken = await b.claim(second);
    ok(taken.kind === "granted");
    deepEqual([taken.epoch, taken.term], [2, 2]);
    await rejects(a.persist([audit]), /this control does not lead/);
    equal((await a.claim(first)).kind, "held");
    await b.persist([audit]);
    equal((await b.audit(10)).length, 2);
  }));

test("PostgresStore lets the holder go on after its lease ran out, when nobody took it", () =>
  withTwo(async (a, _b, on) => {
    const claim = newClaim("a");
    const before = await a.claim(claim);
    await on.sql("UPDATE heddle.lease SET ends_at = now() - interval '1 h'");
    deepEqual(await a.claim(claim), before);
    await a.persist([audit]);
  }));

test("PostgresStore gives a released lease away at once", () =>
  withTwo(async (a, b) => {
    await lead(a, newClaim("a"));
    await a.release();
    equal(await lead(b, newClaim("b")), 2);
    await a.release();
    await b.persist([audit]);
  }));

test("PostgresStore begins a new epoch when the store is not as its holder left it", () =>
  withTwo(async (a, _b, on) => {
    const claim = newClaim("a");
    const before = await a.claim(claim);
    ok(before.kind === "granted");
    // What a write does that arrived although nobody heard of it.
    await on.sql("UPDATE heddle.lease SET writes = writes + 1");
    await rejects(a.persist([audit]), /the store is not as it left it/);
    const after = await a.claim(claim);
    ok(after.kind === "granted");
    deepEqual([after.epoch, after.term], [before.epoch + 1, before.term + 1]);
    await a.persist([audit]);
  }));

test("PostgresStore leads with one of many that start at once on an empty database", async () => {
  await using on = await database();
  const stores = await Promise.all(Array.from({ length: 5 }, () => on.open()));
  const answers = await Promise.all(stores.map((store) => store.claim(newClaim())));
  const kinds = answers.map(({ kind }: ClaimAnswer) => kind).toSorted();
  deepEqual(kinds, ["granted", "held", "held", "held", "held"]);
  await Promise.all(stores.map((store) => store.close()));
});

test("PostgresStore refuses a newer schema and leaves it as it is", async () => {
  await using on = await database();
  await withStore(on, async (store) => void await lead(store));
  await on.sql("UPDATE heddle.schema_version SET version = 99");
  await withStore(on, async (store) => {
    await rejects(store.claim(newClaim()), /its schema is 99, this control knows up to \d+/);
  });
  deepEqual((await on.sql("SELECT version FROM heddle.schema_version"))[0]?.["version"], 99);
});

test("PostgresStore says what is wrong, and works again, when the server was away", async () => {
  await using server = await PostgresServer.start();
  const store = openPostgresStore(server.settings);
  const claim = newClaim();
  const before = await store.claim(claim);
  await server.kill();
  await rejects(store.persist([audit]), /Cannot write in PostgreSQL at 127\.0\.0\.1:\d+: /);
  await rejects(store.claim(claim), /ECONNREFUSED/);
  await server.resume();
  deepEqual(await store.claim(claim), before);
  await store.persist([audit]);
  await store.close();
});

test("PostgresStore gives up on a server that is silent, in bounded time, and comes back to it", async () => {
  await using server = await PostgresServer.start();
  const store = openPostgresStore(server.settings);
  const claim = newClaim();
  await lead(store, claim);
  await server.freeze();
  await rejects(store.persist([audit]), /Cannot write in PostgreSQL .*: no answer within 3 s/);
  const opened = openPostgresStore(server.settings);
  await rejects(opened.claim(newClaim()), /: no answer within 3 s/);
  await opened.close();
  server.thaw();
  await lead(store, claim);
  await store.persist([audit]);
  deepEqual(await store.audit(1), [audit]);
  await store.close();
});

test("PostgresStore checks the server's certificate, and shows its password", async () => {
  const now = Date.now();
  const make = () => createRoot({ cluster: "test", validMs: HOUR_MS, now });
  const [authority, other] = [await make(), await make()];
  const leaf = await createLeaf(authority, {
    identity: { cluster: "test", role: "control", name: "postgres" },
    hosts: ["127.0.0.1"],
    validMs: HOUR_MS,
    now,
  });
  const tls = { cert: leaf.certificatePem, key: leaf.keyPem };
  await using server = await PostgresServer.start({ tls, password: "s3cret" });
  const settings = { ...server.settings, password: "s3cret", ca: authority.certificatePem };
  const claims = async (parts: Partial<PostgresSettings>) => {
    const store = openPostgresStore({ ...settings, ...parts });
    try {
      return (await store.claim(newClaim())).kind;
    } finally {
      await store.close();
    }
  };
  equal(await claims({}), "granted");
  await rejects(claims({ ca: other.certificatePem }), (error: Error) => {
    match(error.message, /certificate|issuer|self.signed/i);
    return true;
  });
  await rejects(claims({ password: "wrong" }), /password authentication failed/);
  await rejects(claims({ password: undefined }), /password/);
});

const TO_SCHEMA_1 = `
  DROP TABLE heddle.failures, heddle.tenancy, heddle.key_used, heddle.usage_record, heddle.usage_hour, heddle.spent,
    heddle.measurement, heddle.usage_pool;
  ALTER TABLE heddle.audit DROP COLUMN before, DROP COLUMN after;
  UPDATE heddle.schema_version SET version = 1;
`;

test("PostgresStore brings an older schema up to date, all of it or none, and keeps what was in it", async () => {
  await using on = await database();
  await withStore(on, async (store) => {
    await lead(store);
    await store.persist([audit]);
    await store.release();
  });
  await on.sql(TO_SCHEMA_1);
  await on.sql("CREATE TABLE heddle.usage_hour (what text)");
  await withStore(on, (store) => rejects(store.claim(newClaim()), /usage_hour" already exists/));
  const [left] = await on.sql(
    "SELECT version, to_regclass('heddle.tenancy')::text AS tenancy FROM heddle.schema_version",
  );
  deepEqual([left?.["version"], left?.["tenancy"]], [1, null]);
  await on.sql("DROP TABLE heddle.usage_hour");
  await withStore(on, async (store) => {
    await lead(store);
    deepEqual(await store.audit(10), [audit]);
    equal((await store.loadTenancy()).rows.length, 0);
  });
});
