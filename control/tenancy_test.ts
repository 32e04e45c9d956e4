/** Tenancy through a whole control: operators, routers, the store, restarts. */
import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { apiKeyHash, isApiKey, shownApiKey } from "@heddle/common/api_key";
import { RouterService, ShareDimension } from "@heddle/proto/gen/router";
import {
  BudgetPeriod,
  ScopeKind,
  TenancyService,
  TokenUsageSchema,
  UsageBy,
  type UsageRecord,
  UsageRecordSchema,
} from "@heddle/proto/gen/tenancy";
import { Site, type WatchingRouter } from "./site_fake.ts";

const DAY_MS = 86_400_000n;

type Operator = Awaited<ReturnType<Site["tenancy"]>>;

/** A project in a team in an organisation, with one key. */
async function acme(operator: Operator) {
  const make = (kind: ScopeKind, name: string, parent = "") =>
    operator.createScope({ kind, name, parent });
  await make(ScopeKind.ORGANISATION, "acme");
  await make(ScopeKind.TEAM, "research", "acme");
  await make(ScopeKind.PROJECT, "chat", "acme/research");
  return await operator.createKey({ project: "acme/research/chat", settings: { name: "ci" } });
}

function record(router: WatchingRouter, keyId: string, parts: Partial<UsageRecord> = {}) {
  const key = router.keys.get(keyId);
  const made = create(UsageRecordSchema, {
    id: crypto.randomUUID(),
    keyId,
    projectId: key?.projectId ?? "",
    scopeIds: key?.scopeIds ?? [],
    model: "demo",
    outcome: "ok",
    costMicro: 1_000_000n,
  });
  return Object.assign(made, parts);
}

Deno.test("control gives routers the key that it made, and takes back the one that it revoked", async () => {
  await using site = await Site.make();
  await site.start();
  const operator = await site.tenancy();
  const { key, secret } = await acme(operator);
  ok(isApiKey(secret));
  const id = key?.id ?? "";
  const router = await site.router();
  await router.until(() => router.keys.has(id));
  const known = router.keys.get(id);
  deepEqual(known?.secrets[0]?.sha256, apiKeyHash(secret));
  equal(known?.secrets[0]?.prefix, shownApiKey(secret));
  deepEqual([known?.organisation, known?.project, known?.scopeIds.length], ["acme", "chat", 4]);
  equal(known?.models, undefined, "nothing limits it");

  await operator.setLimits({ scope: "acme", limits: { models: { items: ["demo", "big"] } } });
  await operator.setLimits({
    scope: "acme/research/chat",
    limits: { models: { items: ["big", "x"] } },
  });
  await router.until(() => router.keys.get(id)?.models?.items.length === 1);
  deepEqual(router.keys.get(id)?.models?.items, ["big"]);

  const rotated = await operator.rotateKey({ key: id, overlapMs: 60_000n });
  await router.until(() => router.keys.get(id)?.secrets.length === 2);
  ok((router.keys.get(id)?.secrets[0]?.expiresAtS ?? 0n) > 0n);
  deepEqual(router.keys.get(id)?.secrets[1]?.sha256, apiKeyHash(rotated.secret));

  const at = performance.now();
  await operator.revokeKey({ key: id, reason: "leaked" });
  await router.until(() => !router.keys.has(id));
  ok(performance.now() - at < 2_000);
  await rejects(operator.rotateKey({ key: id }), /it is revoked/);
  router.leave();
  for (const text of [secret, rotated.secret]) {
    equal(site.log.some((line) => line.includes(text)), false, "no key is in the log");
  }
});

Deno.test("a key has its project's band and routing profile where it has none of its own", async () => {
  await using site = await Site.make();
  await site.start();
  const operator = await site.tenancy();
  await operator.createScope({ kind: ScopeKind.ORGANISATION, name: "acme" });
  const kind = ScopeKind.PROJECT;
  const said = { parent: "acme", routingProfile: "batch", band: "gold" };
  const { scope } = await operator.createScope({ kind, name: "night", ...said });
  deepEqual([scope?.band, scope?.routingProfile], ["gold", "batch"]);
  const made = async (name: string, settings: { band?: string; routingProfile?: string }) => {
    const settled = { name, ...settings };
    const { key } = await operator.createKey({ project: "acme/night", settings: settled });
    return key?.id ?? "";
  };
  const plain = await made("plain", {});
  const own = await made("own", { band: "bronze", routingProfile: "chat" });
  const router = await site.router();
  await router.until(() => router.keys.has(plain) && router.keys.has(own));
  const known = (id: string) => [router.keys.get(id)?.band, router.keys.get(id)?.routingProfile];
  deepEqual([known(plain), known(own)], [["gold", "batch"], ["bronze", "chat"]]);
  router.leave();
  const team = { kind: ScopeKind.TEAM, name: "t", parent: "acme", band: "gold" };
  await rejects(operator.createScope(team), /only a project has a routing profile or a band/);
  await rejects(
    operator.createScope({ kind, name: "x", parent: "acme", band: "diamond" }),
    /no band "diamond"/,
  );
});

Deno.test("control ends the old secret of a rotated key, and a key, when their time has come", async () => {
  await using site = await Site.make();
  await site.start();
  const operator = await site.tenancy();
  const { key } = await acme(operator);
  const id = key?.id ?? "";
  const router = await site.router();
  await operator.rotateKey({ key: id, overlapMs: 1_500n });
  await router.until(() => router.keys.get(id)?.secrets.length === 2);
  await router.until(() => router.keys.get(id)?.secrets.length === 1);
  const short = await operator.createKey({
    project: "acme/research/chat",
    settings: { name: "short" },
    expiresInMs: 1_500n,
  });
  await router.until(() => router.keys.has(short.key?.id ?? ""));
  await router.until(() => !router.keys.has(short.key?.id ?? ""));
  const { keys } = await operator.listKeys({ all: true });
  deepEqual(keys.map(({ state }) => state), ["active", "expired"]);
  router.leave();
});

Deno.test("control counts a record once, enforces budgets over restarts, and lets them refill", async () => {
  await using site = await Site.make();
  await site.start();
  const operator = await site.tenancy();
  const { key } = await acme(operator);
  const id = key?.id ?? "";
  const budget = { budgetMicro: 3_000_000n, budgetPeriod: BudgetPeriod.DAY };
  await operator.setLimits({ scope: "acme", limits: budget });
  let router = await site.router();
  await router.until(() => router.keys.has(id) && router.scopes.size === 1);
  const [scope] = [...router.scopes.keys()];
  equal(router.scopes.get(scope ?? "")?.budget?.exhausted, false);
  const sent = [record(router, id), record(router, id)];
  equal((await router.client.recordUsage({ router: "r/1", records: sent })).duplicates, 0);
  equal((await router.client.recordUsage({ router: "r/1", records: sent })).duplicates, 2);
  router.leave();

  await site.stop();
  await site.start();
  router = await site.router();
  await router.until(() => router.scopes.size === 1);
  const restarted = router.scopes.get(scope ?? "")?.budget;
  deepEqual([restarted?.spentMicro, restarted?.exhausted], [2_000_000n, false]);
  ok((restarted?.refillMs ?? 0n) > 0n && (restarted?.refillMs ?? 0n) <= DAY_MS);
  const third = [...sent, record(router, id)];
  equal((await router.client.recordUsage({ router: "r/1", records: third })).duplicates, 2);
  await router.until(() => router.scopes.get(scope ?? "")?.budget?.exhausted === true);
  const again = await site.tenancy();
  await again.setLimits({ scope: "acme", limits: { ...budget, budgetMicro: 4_000_000n } });
  await router.until(() => router.scopes.get(scope ?? "")?.budget?.exhausted === false);
  router.leave();
});

Deno.test("control answers what was used by whatever is told apart, and a holder what is theirs", async () => {
  await using site = await Site.make();
  await site.start();
  const operator = await site.tenancy();
  const { key } = await acme(operator);
  const other = await operator.createKey({
    project: "acme/research/chat",
    settings: { name: "other" },
    limits: { requestsPerMinute: 7n },
  });
  await operator.setLimits({ scope: "acme", limits: { requestsPerMinute: 5n } });
  const router = await site.router();
  await router.until(() => router.keys.size === 2);
  const usage = { promptTokens: 10n, completionTokens: 4n, cachedTokens: 8n, reasoningTokens: 1n };
  const withUsage = (keyId: string | undefined, model: string, outcome = "ok") =>
    record(router, keyId ?? "", {
      model,
      outcome,
      usage: create(TokenUsageSchema, usage),
    });
  await router.client.recordUsage({
    router: "r/1",
    records: [
      { ...withUsage(key?.id, "demo"), pool: "ib-a/h100-80g" },
      withUsage(key?.id, "big", "client_closed"),
      withUsage(other.key?.id, "demo"),
    ],
  });
  const ask = async (by: UsageBy[], scope = "") =>
    (await operator.queryUsage({ by, sinceMs: DAY_MS, scope })).rows;
  const [all] = await ask([]);
  deepEqual([all?.requests, all?.failures, all?.promptTokens, all?.cachedTokens], [
    3n,
    1n,
    30n,
    24n,
  ]);
  const byModel = await ask([UsageBy.MODEL]);
  deepEqual(byModel.map(({ model, requests }) => [model, requests]), [["big", 1n], ["demo", 2n]]);
  const byPool = await ask([UsageBy.POOL], "acme");
  deepEqual(byPool.map(({ pool, requests }) => [pool, requests]), [
    ["", 2n],
    ["ib-a/h100-80g", 1n],
  ]);
  const byKey = await ask([UsageBy.KEY], other.key?.id ?? "");
  deepEqual(byKey.map(({ keyName, project, requests }) => [keyName, project, requests]), [
    ["other", "acme/research/chat", 1n],
  ]);
  const [byOrg] = await ask([UsageBy.ORGANISATION, UsageBy.DAY], "acme/research");
  deepEqual([byOrg?.organisation, byOrg?.requests], ["acme", 3n]);
  ok(Number(byOrg?.fromS) % 86_400 === 0, "days begin at midnight");

  const own = await router.client.getOwnUsage({ router: "r/1", keyId: other.key?.id ?? "" });
  deepEqual(own.rows.map(({ model, requests }) => [model, requests]), [["demo", 1n]]);
  deepEqual(own.limits.map(({ name, value, scopeName }) => [name, value, scopeName]), [
    ["requests_per_minute", 5n, "acme"],
  ]);
  await rejects(router.client.getOwnUsage({ router: "r/1", keyId: "key_none" }), /no such key/);
  router.leave();
});

Deno.test("control shares a limit between routers, and asks one for what it does not use", async () => {
  await using site = await Site.make();
  await site.start();
  const operator = await site.tenancy();
  const { key } = await acme(operator);
  const id = key?.id ?? "";
  await operator.setLimits({ scope: id, limits: { concurrentRequests: 10 } });
  const router = await site.router();
  await router.until(() => router.scopes.has(id));
  const dimension = ShareDimension.CONCURRENT;
  const ask = async (name: string, wanted: number, held: number) => {
    const demands = [{ scopeId: id, dimension, wanted, held }];
    const share = { router: name, routerInstance: "i", demands };
    return (await router.client.share(share)).grants[0]?.share;
  };
  equal(await ask("r/1", 0, 0), 10, "nobody else wants any");
  const asked = ask("r/2", 8, 0);
  await router.until(() => router.recalled.includes(id));
  equal(await ask("r/1", 0, 0), 1, "it has given back what it does not use");
  // On a machine that was too busy the answer did not wait for it.
  const first = await asked ?? 0;
  equal(first === 0 ? await ask("r/2", 8, first) : first, 9);
  router.leave();
});

Deno.test("control says on the trail who changed what, with what was before and is after", async () => {
  await using site = await Site.make();
  await site.start();
  const operator = await site.tenancy();
  const { key, secret } = await acme(operator);
  await operator.setLimits({ scope: "acme", limits: { requestsPerMinute: 5n } });
  await operator.setLimits({
    scope: "acme",
    limits: { tokensPerMinute: 9n },
    keep: [
      "requests_per_minute",
    ],
  });
  await operator.setPrice({
    model: "demo",
    price: { basis: { case: "requestMicro", value: 7n } },
  });
  await operator.revokeKey({ key: key?.id ?? "", reason: "leaked" });
  const { records } = await (await site.operator()).listAudit({});
  deepEqual(records.map(({ action, by, subject }) => [action, by, subject]).reverse().slice(0, 5), [
    ["create_organisation", "ann", "acme"],
    ["create_team", "ann", "acme/research"],
    ["create_project", "ann", "acme/research/chat"],
    ["create_key", "ann", key?.id ?? ""],
    ["set_limits", "ann", "acme"],
  ]);
  const [revoked, , limits] = records;
  deepEqual([revoked?.action, revoked?.reason], ["revoke_key", "leaked"]);
  equal(limits?.before, '{"requestsPerMinute":5}');
  equal(limits?.after, '{"requestsPerMinute":5,"tokensPerMinute":9}');
  const hash = Array.from(apiKeyHash(secret), (byte) => byte.toString(16).padStart(2, "0")).join(
    "",
  );
  for (const { before, after } of records) {
    equal(`${before}${after}`.includes(secret), false);
    equal(`${before}${after}`.includes(hash), false);
  }
});

Deno.test("control refuses names, lists and numbers that are not what they must be", async () => {
  await using site = await Site.make();
  await site.start();
  const operator = await site.tenancy();
  await acme(operator);
  const project = "acme/research/chat";
  const nasty = [
    "",
    "\0",
    "a\0b",
    "'; DROP TABLE tenancy; --",
    "a/b",
    "x".repeat(65_536),
    "../..",
    "é",
  ];
  for (const name of nasty) {
    const kind = ScopeKind.ORGANISATION;
    await rejects(operator.createScope({ kind, name }), /Cannot create the organisation/);
    await rejects(operator.listKeys({ in: name === "" ? "\0" : name }), /there is no/);
    await rejects(operator.revokeKey({ key: name }), /there is no key/);
    // Models have slashes.
    if (name === "a/b") continue;
    const settings = { name: "k", models: { items: [name] } };
    await rejects(operator.createKey({ project, settings }), /is no model/);
  }
  const refused: readonly (readonly [Parameters<Operator["createKey"]>[0], RegExp])[] = [
    [{ project: "acme", settings: { name: "k" } }, /keys are in projects/],
    [{ project, settings: { name: "a\0b" } }, /control characters/],
    [{ project, settings: { name: "x".repeat(65_536) } }, /longer than/],
    [{ project, settings: { name: "k", band: "diamond" } }, /no band "diamond"/],
    [{ project, settings: { name: "k", paths: { items: ["/v1/../x?y"] } } }, /is no path/],
    [{ project, settings: { name: "k", addresses: { items: ["10.0.0.0/33"] } } }, /no address/],
    [{ project, settings: { name: "k" }, limits: { budgetMicro: 5n } }, /a period/],
    [
      { project, settings: { name: "k" }, limits: { requestsPerMinute: 2n ** 63n } },
      /whole number/,
    ],
  ];
  for (const [request, complaint] of refused) {
    await rejects(operator.createKey(request), complaint);
  }
  const taken = operator.createScope({ kind: ScopeKind.TEAM, name: "research", parent: "acme" });
  await rejects(taken, /there is one in "acme" already/);
  await rejects(
    operator.deleteScope({ scope: "acme" }),
    /2 teams and projects and 1 keys are in it/,
  );
  const { revokedKeys } = await operator.deleteScope({ scope: "acme", yes: true });
  equal(revokedKeys, 1);
  await rejects(
    operator.listKeys({ in: "acme" }),
    /there is no organisation, team or project "acme"/,
  );
  equal((await operator.listScopes({})).scopes.length, 0);
});

Deno.test("control restores a backup while it runs, and goes on with what was in it", async () => {
  await using site = await Site.make();
  await site.start();
  const operator = await site.tenancy();
  const { key } = await acme(operator);
  const pieces = [];
  for await (const { chunk } of operator.backup({})) pieces.push(chunk);
  await operator.revokeKey({ key: key?.id ?? "" });
  await rejects(
    operator.restore((async function* () {
      await Promise.resolve();
      yield { chunk: new TextEncoder().encode("nonsense".repeat(99)) };
    })()),
    /no backup of a store/,
  );
  await operator.restore((async function* () {
    await Promise.resolve();
    for (const chunk of pieces) yield { chunk };
  })());
  const { keys } = await operator.listKeys({});
  deepEqual(keys.map(({ id }) => id), [key?.id]);
  const [last] = (await (await site.operator()).listAudit({})).records;
  equal(last?.action, "restore");
  match(site.log.join("\n"), /The store was restored from a backup/);
});

Deno.test("only a router may share limits, hand in usage and ask for a key's own, and for itself", async () => {
  await using site = await Site.make();
  await site.start();
  const operator = await site.tenancy();
  const { key } = await acme(operator);
  const calls = (client: WatchingRouter["client"], router: string) => [
    () => client.share({ router }),
    () => client.recordUsage({ router }),
    () => client.getOwnUsage({ router, keyId: key?.id ?? "" }),
  ];
  for (
    const [role, name, router] of [
      ["agent", "r", "r/1"],
      ["router", "other", "r/1"],
      ["router", "r", "../r"],
    ] as const
  ) {
    const transport = site.connect("agents", await site.issue({ role, name }));
    for (const call of calls(createClient(RouterService, transport), router)) {
      await rejects(call(), (error) => {
        const { code } = ConnectError.from(error);
        return code === Code.PermissionDenied || code === Code.InvalidArgument;
      }, `${role} ${name} as ${router}`);
    }
  }
  const transport = site.connect("agents", await site.issue({ role: "router", name: "r" }));
  for (const call of calls(createClient(RouterService, transport), "r/1")) await call();
  // Operators' calls are not where routers and agents connect, and the other way round.
  const wrong = site.connect("admin", await site.issue({ role: "router", name: "r" }));
  await rejects(
    createClient(TenancyService, wrong).listKeys({}),
    /permission_denied|unauthenticated/,
  );
  const there = site.connect("agents", await site.issue({ role: "operator", name: "ann" }));
  await rejects(
    createClient(TenancyService, there).listKeys({}),
    /unimplemented|permission_denied/,
  );
});
