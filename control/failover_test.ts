/** Several controls on one PostgreSQL: real listeners, a real server, scripted agents and routers. */
import { deepEqual, equal, match, rejects } from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import postgres from "postgres";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { formatAddress } from "@heddle/common/address";
import type { TlsMaterial } from "@heddle/common/mtls_files";
import { createRequest, readCertificate } from "@heddle/common/pki";
import { AdminService } from "@heddle/proto/gen/admin";
import { CertificateService, RenewalService } from "@heddle/proto/gen/identity";
import { BudgetPeriod, ScopeKind, UsageRecordSchema } from "@heddle/proto/gen/tenancy";
import type { Control } from "./control.ts";
import { AgentStream } from "./edge/agent_fake.ts";
import {
  NO_POSTGRES,
  postgresBinaries,
  PostgresServer,
} from "./edge/store/postgres/server_fake.ts";
import { bringUp, KEY, Site } from "./site_fake.ts";

/** Short, so that what waits for its end takes seconds, and long enough for a busy machine. */
const LEASE_MS = 4_000;
/** Longer than anything here should take. */
const WAIT_MS_MAX = 20_000;
const POLL_MS = 50;

const ignore = postgresBinaries() === undefined;
const test = (name: string, fn: (pair: Pair) => Promise<void>) =>
  Deno.test({
    name: ignore ? `${name} (${NO_POSTGRES})` : name,
    ignore,
    async fn() {
      await using pair = await Pair.start();
      await fn(pair);
    },
  });

/** Two controls, `a` leading and `b` standing by. */
class Pair implements AsyncDisposable {
  private constructor(
    readonly server: PostgresServer,
    readonly site: Site,
    readonly a: Control,
    readonly b: Control,
    /** Starts one more of that name. */
    readonly start: (name: string) => Promise<Control>,
  ) {}

  static async start(): Promise<Pair> {
    const server = await PostgresServer.start();
    const site = await Site.make();
    const { address, database, user } = server.settings;
    const files = { address, database, user, passwordFile: undefined, caFile: undefined };
    const start = (name: string) => site.start({}, { name, postgres: files, leaseMs: LEASE_MS });
    return new Pair(server, site, await start("a"), await start("b"), start);
  }

  /** Runs a statement beside the controls. */
  async sql(text: string): Promise<void> {
    const { address, database, user } = this.server.settings;
    const sql = postgres({ ...address, database, user, max: 1, fetch_types: false });
    await sql.unsafe(text);
    await sql.end({ timeout: 1 });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.site[Symbol.asyncDispose]();
    await this.server[Symbol.asyncDispose]();
  }
}

async function eventually(what: string, look: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + WAIT_MS_MAX;
  while (!await look()) {
    if (performance.now() > deadline) throw new Error(`waited in vain until ${what}`);
    await new Promise((tick) => setTimeout(tick, POLL_MS));
  }
}

const refusedWith = (code: Code, words: RegExp) => (error: unknown) => {
  const refused = ConnectError.from(error);
  equal(Code[refused.code], Code[code]);
  match(refused.rawMessage, words);
  return true;
};

/** What `/ready` says. */
async function ready(control: Control): Promise<string> {
  return await (await fetch(`http://${formatAddress(control.metrics)}/ready`)).text();
}

test("a standby refuses agents, routers and decisions, and says who leads", async ({ site, a, b }) => {
  const leads = /Control "b" stands by: control "a" at 127\.0\.0\.1:0 leads/;
  const agent = await site.agent("n1", [], b);
  await rejects(agent.next(), refusedWith(Code.Unavailable, leads));
  const router = await site.router(b);
  await rejects(router.until(() => false), refusedWith(Code.Unavailable, leads));
  await rejects(router.report(), refusedWith(Code.Unavailable, leads));
  const operator = await site.operator(b);
  await rejects(
    operator.cordon({ node: "n1", reason: "" }),
    refusedWith(Code.FailedPrecondition, leads),
  );
  await rejects(operator.listNodes({}), refusedWith(Code.FailedPrecondition, leads));
  const { leading, name, leader, leaderAddress, cluster, term } = await operator.getVersion({});
  deepEqual({ leading, name, leader, leaderAddress, cluster, term }, {
    leading: false,
    name: "b",
    leader: "a",
    leaderAddress: "127.0.0.1:0",
    cluster: "test",
    term: 1n,
  });
  const leader_ = await (await site.operator(a)).getVersion({});
  deepEqual([leader_.leading, leader_.name, leader_.term, leader_.unsure], [true, "a", 1n, ""]);
  deepEqual([await ready(a), await ready(b)], ["ready\n", "ready\n"]);
  agent.abort();
});

test("the standby takes over when the leader stops: cordons stay, nothing restarts", async ({ site, a, b }) => {
  const before = await site.agent("n1", [], a);
  await before.expect("registered");
  const { command, report } = await bringUp(before);
  await (await site.operator(a)).cordon({ node: "n1", reason: "fan" });
  const ended = rejects(before.next(), refusedWith(Code.Unavailable, /Control stops/));
  await site.stop(a);
  await ended;
  const operator = await site.operator(b);
  await eventually("b leads", async () => (await operator.getVersion({})).leading);
  equal((await operator.getVersion({})).term, 2n);
  const agent = await site.agent("n1", [report], b);
  const registered = await agent.expect("registered");
  deepEqual([registered.term, registered.shardIds], [2n, [command.spec?.shardId]]);
  const router = await site.router(b);
  await router.until(() => router.settled && router.endpoints.size === 1);
  equal([...router.endpoints.values()][0]?.apiKey, KEY);
  const [node] = (await operator.listNodes({})).nodes;
  deepEqual([node?.cordoned, node?.decidedBy, node?.decisionReason], [true, "ann", "fan"]);
  // Log lines come after every command that was sent before.
  const lines = operator.readLogs({ source: { case: "node", value: "n1" } });
  const line = lines[Symbol.asyncIterator]().next();
  const { requestId } = await agent.expect("readLog");
  agent.send({ case: "logChunk", value: { requestId, lines: ["here"], end: true } });
  await line;
  router.leave();
  agent.abort();
});

test("a standby refuses who was struck by the leader, renews nobody, and goes on so when it leads", async (pair) => {
  const { site, a, b } = pair;
  const thief = await site.issue({ role: "agent", name: "n1" });
  const other = await site.issue({ role: "agent", name: "n2" });
  const renew = async (shown: TlsMaterial) => {
    const client = createClient(RenewalService, site.connect("agents", shown, b));
    return await client.renew({ requestPem: await createRequest(shown.key) });
  };
  const register = async (shown: TlsMaterial) => {
    const agent = new AgentStream(site.connect("agents", shown, b));
    agent.send({ case: "register", value: { node: "n1" } });
    await agent.next();
  };
  // On a connection that stands before anything is struck.
  const standing = createClient(RenewalService, site.connect("agents", thief, b));
  const stands = refusedWith(Code.Unavailable, /stands by/);
  const request = { requestPem: await createRequest(thief.key) };
  await rejects(standing.renew(request), stands);
  await rejects(renew(other), stands);
  const certificates = createClient(
    CertificateService,
    site.connect("admin", await site.issue({ role: "operator", name: "ann" }), a),
  );
  await certificates.strike({
    struck: { case: "serial", value: readCertificate(thief.cert).serial },
    reason: "stolen",
  });
  const refused = (error: unknown) => ConnectError.from(error).code === Code.Unauthenticated;
  await eventually("the standby has read what was struck", async () => {
    return await register(thief).then(() => false, refused);
  });
  await rejects(standing.renew(request), refused);
  await rejects(renew(thief), refused);
  await rejects(renew(other), stands);
  // Known without the store, too.
  await pair.server.kill();
  await rejects(register(thief), refused);
  await pair.server.resume();
  await site.stop(a);
  const operator = await site.operator(b);
  await eventually("b leads", async () => (await operator.getVersion({})).leading);
  await rejects(register(thief), refused);
  await rejects(renew(thief), refused);
  await rejects(renew(other), refusedWith(Code.FailedPrecondition, /no issuing section/));
});

test("a control that starts to stand by knows who was struck before", async ({ site, a, b, start }) => {
  await site.stop(b);
  const thief = await site.issue({ role: "operator", name: "eve" });
  const certificates = createClient(
    CertificateService,
    site.connect("admin", await site.issue({ role: "operator", name: "ann" }), a),
  );
  const holder = { role: "operator", name: "eve" };
  // Certificates tell seconds: what was issued in this one counts as before.
  await certificates.strike({ struck: { case: "holder", value: holder } });
  const again = await start("b");
  const eve = createClient(AdminService, site.connect("admin", thief, again));
  await rejects(
    eve.getVersion({}),
    refusedWith(Code.Unauthenticated, /the certificate was refused/),
  );
});

test("with the database away control decides nothing, keeps every stream, and then goes on", async ({ server, site, a, b }) => {
  // It could be quicker to claim when the database is back.
  await site.stop(b);
  const agent = await site.agent("n1", [], a);
  await agent.expect("registered");
  const { command } = await bringUp(agent);
  const router = await site.router(a);
  await router.until(() => router.endpoints.size === 1);
  await server.kill();
  const operator = await site.operator(a);
  await rejects(operator.cordon({ node: "n1", reason: "" }), /Cannot/);
  await eventually("a is not sure any more", async () => {
    agent.send({ case: "heartbeat", value: {} });
    return (await operator.getVersion({})).unsure !== "";
  });
  match(await ready(a), /the store does not answer/);
  await rejects(operator.cordon({ node: "n1", reason: "" }), /the store does not answer/);
  // Its engine fails: without the database that is seen, and nothing is done about it.
  agent.send({
    case: "shardStatus",
    value: {
      shardId: command.spec?.shardId ?? "",
      replicaId: command.spec?.replicaId ?? "",
      state: 9,
      reason: "exited",
    },
  });
  await eventually("the failure is known", async () => {
    const { replicas } = await operator.listReplicas({});
    return replicas[0]?.shards[0]?.reason === "exited";
  });
  deepEqual(router.removals, []);
  await server.resume();
  await router.until(() => router.removals.length === 1);
  equal((await operator.getVersion({})).term, 1n);
  const { node } = await operator.cordon({ node: "n1", reason: "again" });
  equal(node?.cordoned, true);
  agent.abort();
  router.leave();
});

test("a control that lost its lease ends its streams, and says who has it", async (pair) => {
  const { site, a } = pair;
  const agent = await site.agent("n1", [], a);
  await agent.expect("registered");
  await agent.expect("startShard");
  const router = await site.router(a);
  await router.until(() => router.models.has("demo"));
  const lost = refusedWith(Code.Unavailable, /"a" does not lead any more: control "c" does/);
  const ends = Promise.all([
    rejects(agent.next(), lost),
    rejects(router.until(() => false), lost),
  ]);
  await pair.sql("UPDATE heddle.lease SET holder = 'x', name = 'c', epoch = epoch + 1");
  await pair.sql("UPDATE heddle.lease SET ends_at = now() + interval '1 h'");
  await ends;
  const operator = await site.operator(a);
  await rejects(
    operator.cordon({ node: "n1", reason: "" }),
    refusedWith(Code.FailedPrecondition, /control "c".* leads/),
  );
  await pair.sql("UPDATE heddle.lease SET ends_at = now()");
  const others = [operator, await site.operator(pair.b)];
  await eventually("one of them leads, in a term that both know", async () => {
    const seen = await Promise.all(others.map((each) => each.getVersion({})));
    return seen.filter(({ leading }) => leading).length === 1 &&
      seen.every(({ term }) => term === 2n);
  });
});

test("a control whose store is not as it left it begins anew from what is stored", async (pair) => {
  const { site, a } = pair;
  const agent = await site.agent("n1", [], a);
  await agent.expect("registered");
  const { report } = await bringUp(agent);
  const ended = rejects(agent.next(), refusedWith(Code.Unavailable, /does not lead any more/));
  // A write that arrived although nobody heard of it: a cordon, as it happens.
  await pair.sql(`
    UPDATE heddle.lease SET writes = writes + 1;
    INSERT INTO heddle.decision VALUES
      ('node_decision', 'n1', '{"kind":"cordon","by":"bob","reason":"fan","at":1}')`);
  await ended;
  const operator = await site.operator(a);
  await eventually("a leads again", async () => (await operator.getVersion({})).term === 2n);
  const again = await site.agent("n1", [report], a);
  deepEqual((await again.expect("registered")).shardIds.length, 1);
  deepEqual((await operator.listNodes({})).nodes.map(({ cordoned }) => cordoned), [true]);
  again.abort();
});

test("keys, limits, budgets and usage go on with whoever leads, and a standby serves none of them", async ({ site, a, b }) => {
  const first = await site.tenancy(a);
  await first.createScope({ kind: ScopeKind.ORGANISATION, name: "acme" });
  await first.createScope({ kind: ScopeKind.PROJECT, name: "chat", parent: "acme" });
  const made = await first.createKey({ project: "acme/chat", settings: { name: "ci" } });
  const id = made.key?.id ?? "";
  const limits = { budgetMicro: 5_000_000n, budgetPeriod: BudgetPeriod.MONTH };
  await first.setLimits({ scope: "acme", limits });
  const router = await site.router(a);
  await router.until(() => router.keys.has(id) && router.scopes.size === 1);
  const scopeIds = router.keys.get(id)?.scopeIds ?? [];
  const record = (number: number) =>
    create(UsageRecordSchema, {
      id: `record-${number}-0123456789`,
      keyId: id,
      scopeIds,
      outcome: "ok",
      costMicro: 2_000_000n,
    });
  await router.client.recordUsage({ router: "r/1", records: [record(1), record(2)] });
  const ended = rejects(router.until(() => false), refusedWith(Code.Unavailable, /Control stops/));

  const standby = await site.tenancy(b);
  const stands = refusedWith(Code.FailedPrecondition, /stands by/);
  await rejects(standby.listKeys({}), stands);
  await rejects(standby.revokeKey({ key: id }), stands);
  const early = await site.router(b);
  const away = refusedWith(Code.Unavailable, /stands by/);
  await rejects(early.client.recordUsage({ router: "r/1", records: [record(3)] }), away);
  await rejects(early.client.share({ router: "r/1" }), away);

  await site.stop(a);
  await ended;
  const operator = await site.operator(b);
  await eventually("b leads", async () => (await operator.getVersion({})).leading);
  const next = await site.router(b);
  await next.until(() => next.keys.has(id) && next.scopes.size === 1);
  const budget = () => [...next.scopes.values()][0]?.budget;
  deepEqual([budget()?.spentMicro, budget()?.exhausted], [4_000_000n, false]);
  // The answer of the one before may have been lost; the record was not.
  const again = await next.client.recordUsage({ router: "r/1", records: [record(2), record(3)] });
  equal(again.duplicates, 1);
  await next.until(() => budget()?.exhausted === true);
  const [all] = (await standby.queryUsage({ sinceMs: 86_400_000n })).rows;
  deepEqual([all?.requests, all?.costMicro], [3n, 6_000_000n]);
  await standby.revokeKey({ key: id });
  await next.until(() => !next.keys.has(id));
  next.leave();
});
