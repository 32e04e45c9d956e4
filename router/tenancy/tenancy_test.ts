/** Keys, limits and the ledger in a running router, with a control that says what a test wants. */
import { deepEqual, equal, match, notEqual, ok } from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { apiKeyHash } from "@heddle/common/api_key";
import { ShareResponseSchema } from "@heddle/proto/gen/router";
import { BudgetPeriod, ScopeKind } from "@heddle/proto/gen/tenancy";
import { startFakeControl } from "../edge/control/control_fake.ts";
import { CHAT, type RunningRouter, runRouter } from "../testing/running_router.ts";
import { type EngineScript, HEALTHY, openStream, sendJson } from "../testing/scripted_engine.ts";

import { ALL, ask, key, keyOf, recordsOf, said, scope, setup, until } from "./tenancy_fake.ts";

Deno.test("a key of control is wanted, and a revoked one is refused at once", async () => {
  await using s = await setup({ keys: [key(1), key(2)] });
  await using router = await s.router();
  equal(await said(await ask(router, 1)), "200 ok");
  equal(await said(await ask(router, 3)), "401 invalid_api_key");
  const plain = await router.post("/v1/chat/completions", CHAT);
  equal(await said(plain), "401 invalid_api_key");
  s.say({ removedKeys: ["key-1"] });
  await until(async () => (await said(await ask(router, 1))).startsWith("401"), router);
  equal(await said(await ask(router, 2)), "200 ok");
});

Deno.test("a key that is rotated has two secrets for a while", async () => {
  const secrets = [1, 9].map((n) => ({ sha256: apiKeyHash(keyOf(n)), prefix: "sk-heddle-x" }));
  await using s = await setup({ keys: [key(1, { secrets })] });
  await using router = await s.router();
  equal(await said(await ask(router, 1)), "200 ok");
  equal(await said(await ask(router, 9)), "200 ok");
  s.say({ keys: [key(1, { secrets: secrets.slice(1) })] });
  await until(async () => (await said(await ask(router, 1))).startsWith("401"), router);
  equal(await said(await ask(router, 9)), "200 ok");
});

Deno.test("every header with a key meets the same decision", async () => {
  await using s = await setup({
    keys: [
      key(1, { paths: { items: ["/v1/models"] } }),
      key(2, { addresses: { items: ["10.0.0.0/8"] } }),
      key(3, { models: { items: ["free"] } }),
    ],
  });
  await using router = await s.router();
  for (
    const [n, want] of [
      [1, "403 path_not_allowed"],
      [2, "401 address_not_allowed"],
      [3, "403 model_not_allowed"],
    ] as const
  ) {
    for (
      const headers of [
        { authorization: `Bearer ${keyOf(n)}` },
        { "api-key": keyOf(n) },
        { "x-api-key": keyOf(n), "x-forwarded-for": "10.1.1.1", host: "10.1.1.1" },
      ]
    ) {
      equal(await said(await router.post("/v1/chat/completions", CHAT, { headers })), want);
    }
  }
  const two = { authorization: `Bearer ${keyOf(1)}`, "x-api-key": keyOf(2) };
  const both = await router.post("/v1/chat/completions", CHAT, { headers: two });
  equal(await said(both), "400 two_credentials");
  equal(s.engine.calls.length, 0);
});

Deno.test("/v1/models lists what a key may use, and nothing else can be asked for", async () => {
  await using s = await setup({ keys: [key(1, { models: { items: ["nick"] } })] });
  await using router = await s.router();
  const get = (path: string) =>
    fetch(router.url + path, { headers: { authorization: `Bearer ${keyOf(1)}` } });
  const list = await (await get("/v1/models")).json();
  deepEqual(list.data.map(({ id }: { id: string }) => id), ["m", "nick"]);
  equal(await said(await get("/v1/models/free")), "404 model_not_found");
  equal(await said(await ask(router, 1, { model: "free" })), "403 model_not_allowed");
  equal(await said(await ask(router, 1, { model: "nick" })), "200 ok");
});

Deno.test("a limit on requests holds, and says so in OpenAI's form", async () => {
  await using s = await setup({
    keys: [key(1)],
    scopes: [scope("key-1", { requestsPerMinute: 2n })],
  });
  s.control.share(ALL({ "key-1": 2 }));
  await using router = await s.router();
  const answers = [await ask(router, 1), await ask(router, 1), await ask(router, 1)];
  deepEqual(answers.map(({ status }) => status), [200, 200, 429]);
  const remaining = answers.map(({ headers }) => headers.get("x-ratelimit-remaining-requests"));
  deepEqual(remaining, ["1", "0", "0"]);
  const refused = answers[2];
  equal(refused?.headers.get("x-ratelimit-limit-requests"), "2");
  match(refused?.headers.get("x-ratelimit-reset-requests") ?? "", /^(59(\.\d+)?s|1m0s)$/);
  equal(refused?.headers.get("retry-after"), "60");
  const { error } = await refused?.json();
  equal(error.code, "rate_limit_exceeded");
  match(
    error.message,
    /2 requests per minute of the key "key-1" is reached: there is room in 60 s/,
  );
  equal(error.limit.name, "requests_per_minute");
  for (const answer of answers.slice(0, 2)) await answer.body?.cancel();
  const models = await fetch(`${router.url}/v1/models`, {
    headers: { authorization: `Bearer ${keyOf(1)}` },
  });
  equal(models.headers.get("x-ratelimit-remaining-requests"), "0");
  await models.body?.cancel();
});

Deno.test("50 at once on a key worth 10: never more than 10 are at the engine", async () => {
  let now = 0;
  let most = 0;
  const refused = Promise.withResolvers<void>();
  const script: EngineScript = async (call) => {
    most = Math.max(most, ++now);
    await refused.promise;
    now--;
    HEALTHY(call, 0);
  };
  await using s = await setup({
    keys: [key(1)],
    scopes: [scope("project-1", { concurrentRequests: 10 }, ScopeKind.PROJECT)],
  }, script);
  s.control.share(ALL({ "project-1": 10 }));
  await using router = await s.router();
  const statuses: number[] = [];
  await Promise.all(Array.from({ length: 50 }, async () => {
    const response = await ask(router, 1);
    await response.body?.cancel();
    statuses.push(response.status);
    if (statuses.length === 40) refused.resolve(s.engine.called(10));
  }));
  equal(statuses.filter((status) => status === 200).length, 10);
  equal(statuses.filter((status) => status === 429).length, 40);
  equal(most, 10);
  equal(await said(await ask(router, 1)), "200 ok");
});

Deno.test("a spent budget stops what costs something, for good, and leaves what is free", async () => {
  const limits = { budgetMicro: 5_000_000n, budgetPeriod: BudgetPeriod.DAY };
  const budget = { spentMicro: 5_000_000n, exhausted: true, refillMs: 7_200_000n };
  await using s = await setup({
    keys: [key(1)],
    scopes: [{ ...scope("org-1", limits, ScopeKind.ORGANISATION), budget }],
    prices: [{ model: "free", price: { basis: { case: "requestMicro", value: 0n } } }],
  });
  await using router = await s.router();
  const refused = await ask(router, 1);
  equal(refused.headers.get("x-should-retry"), "false");
  equal(refused.headers.get("retry-after"), null);
  const { error } = await refused.json();
  equal(`${refused.status} ${error.code}`, "402 insufficient_quota");
  match(error.message, /budget of the organisation "org-1" is used up: it refills in 2 h 0 min/);
  equal(await said(await ask(router, 1, { model: "free" })), "200 ok");
});

Deno.test("a budget holds over requests of this router before control has heard of them", async () => {
  const limits = { budgetMicro: 2_000_000n, budgetPeriod: BudgetPeriod.MONTH };
  await using s = await setup({ keys: [key(1)], scopes: [scope("key-1", limits)] });
  await using router = await s.router();
  const answers = [];
  for (let n = 0; n < 4; n++) answers.push(await said(await ask(router, 1)));
  deepEqual(answers, ["200 ok", "200 ok", "402 insufficient_quota", "402 insufficient_quota"]);
});

Deno.test("a fallback is held against budget and models of the key before it is asked", async () => {
  const limits = { budgetMicro: 1_000_000n, budgetPeriod: BudgetPeriod.DAY };
  await using s = await setup({
    models: [{ name: "m", fallbacks: ["paid", "other"] }, { name: "paid" }, { name: "other" }],
    endpoints: ["m", "paid", "other"].map((model) => ({
      replicaId: `r-${model}`,
      model,
      address: model === "m" ? "127.0.0.1:9" : "127.0.0.1:10",
      servedName: model,
      weight: 1,
    })),
    keys: [key(1, { models: { items: ["m", "paid"] } })],
    scopes: [{
      ...scope("key-1", limits),
      budget: { spentMicro: 1_000_000n, exhausted: true, refillMs: 1_000n },
    }],
    prices: [{ model: "m", price: { basis: { case: "requestMicro", value: 0n } } }],
  });
  await using router = await s.router();
  // "paid" costs something and "other" is not for this key: only "m" was tried, and is away.
  equal(await said(await ask(router, 1)), "503 engine_unreachable");
  const record = await router.record(1);
  deepEqual(record.attempts.map(({ model }) => model), ["m"]);
});

Deno.test("control gets a record of every request of a key, whoever it was that ended it", async () => {
  const price = {
    basis: {
      case: "tokens",
      value: { promptMicro: 1_000_000n, cachedMicro: 0n, completionMicro: 2_000_000n },
    },
  } as const;
  await using s = await setup({ keys: [key(1)], prices: [{ model: "m", price }] });
  const answer = { status: 200 };
  s.engine.script((call, index) => {
    if (answer.status !== 200) return sendJson(call, answer.status, { error: { message: "no" } });
    return HEALTHY(call, index);
  });
  await using router = await s.router();
  equal(await said(await ask(router, 1)), "200 ok");
  answer.status = 400;
  equal((await said(await ask(router, 1))).slice(0, 3), "400");
  equal((await said(await ask(router, 1, { model: `${keyOf(1)}` }))).slice(0, 3), "404");
  equal(await said(await ask(router, 4)), "401 invalid_api_key");
  await until(() => recordsOf(s.control).length >= 3, router);
  const records = recordsOf(s.control);
  equal(records.length, 3);
  const [served, refused, unknown] = records;
  equal(served?.keyId, "key-1");
  equal(served?.pool, "ib-a/h100-80g");
  equal(unknown?.pool, "");
  equal(served?.projectId, "project-1");
  deepEqual(served?.scopeIds, ["org-1", "project-1", "key-1"]);
  equal(served?.usage?.promptTokens, 11n);
  equal(served?.usage?.completionTokens, 4n);
  equal(served?.costMicro, 19n);
  equal(served?.estimated, false);
  equal(served?.status, 200);
  deepEqual(
    served?.attempts.map(({ replicaId, served, outcome }) => [replicaId, served, outcome]),
    [
      ["r-m", true, "ok"],
    ],
  );
  equal(refused?.outcome, "engine_refused");
  equal(refused?.usage, undefined);
  equal(refused?.costMicro, 0n);
  equal(unknown?.outcome, "model_not_found");
  ok(!unknown?.modelAsked.includes(keyOf(1)));
  equal(new Set(records.map(({ id }) => id)).size, 3);
});

Deno.test("records wait on disk while control is away, and come once it is back, also to another process", async () => {
  await using s = await setup({ keys: [key(1)] });
  const port = s.control.port;
  {
    await using router = await s.router();
    await s.control.close();
    for (let n = 0; n < 5; n++) await (await ask(router, 1)).body?.cancel();
    await router.record(5);
  }
  const files = await Array.fromAsync(Deno.readDir(`${s.folder}/ledger`));
  equal(files.length, 1);
  const { mode } = await Deno.stat(`${s.folder}/ledger/${files[0]?.name}`);
  equal((mode ?? 0) & 0o777, 0o600);
  const control = await startFakeControl(port);
  await using _closed = { [Symbol.asyncDispose]: () => control.close() };
  await using router = await runRouter({
    name: "host/1",
    state_directory: s.folder,
    control: { urls: [control.url] },
    keys: { policy: "control" },
  });
  control.say({ revision: { term: 2n, sequence: 1n }, snapshot: true, snapshotEnd: true });
  await until(() => control.recorded.length > 0, router);
  const records = recordsOf(control);
  equal(records.length, 5);
  ok(records.every(({ outcome }) => outcome === "ok"));
  equal(new Set(records.map(({ id }) => id)).size, 5);
  await until(
    async () => (await Array.fromAsync(Deno.readDir(`${s.folder}/ledger`))).length === 0,
    router,
  );
});

Deno.test("keys and limits outlive control and the router, and a revoked key stays revoked", async () => {
  const limits = { budgetMicro: 1_000_000n, budgetPeriod: BudgetPeriod.DAY };
  await using s = await setup({
    keys: [key(1), key(2), key(3)],
    scopes: [{
      ...scope("key-3", limits),
      budget: { spentMicro: 1_000_000n, exhausted: true, refillMs: 3_600_000n },
    }],
  });
  {
    await using router = await s.router();
    s.say({ removedKeys: ["key-2"] });
    await until(async () => (await said(await ask(router, 2))).startsWith("401"), router);
  }
  await s.control.close();
  {
    await using router = await s.router();
    equal(await said(await ask(router, 1)), "200 ok");
    equal(await said(await ask(router, 2)), "401 invalid_api_key");
    equal(await said(await ask(router, 3)), "402 insufficient_quota");
  }
  await using strict = await runRouter({
    name: "host/1",
    state_directory: s.folder,
    control: { urls: [s.control.url] },
    keys: { policy: "control", cut_off: { after: "0s", then: "refuse" } },
  });
  match(strict.notReady() ?? "", /not heard from control/);
  equal(await said(await ask(strict, 1)), "503 keys_unconfirmed");
});

Deno.test("a key that expires is refused by a router that is cut off", async () => {
  const secret = { sha256: apiKeyHash(keyOf(1)), prefix: "sk-heddle-x", expiresAtS: 1_000n };
  await using s = await setup({ keys: [key(1, { secrets: [secret] })] });
  await using router = await s.router();
  // Control has not removed it, so by control's clock it is good.
  equal(await said(await ask(router, 1)), "200 ok");
  await s.control.close();
  await until(async () => (await said(await ask(router, 1))).startsWith("401"), router);
});

Deno.test("a router that starts knows no key until control has told it all of them", async () => {
  const control = await startFakeControl();
  const folder = await Deno.makeTempDir();
  try {
    await using router = await runRouter({
      name: "host/1",
      state_directory: folder,
      control: { urls: [control.url] },
      keys: { policy: "control" },
    });
    const revision = { term: 1n, sequence: 1n };
    control.say({ revision, snapshot: true, models: [{ name: "m" }], keys: [key(1)] });
    await until(() => control.watchers.length > 0, router);
    equal(await said(await ask(router, 1)), "503 keys_unconfirmed");
    match(router.notReady() ?? "", /has not heard/);
    control.say({ revision, snapshot: true, snapshotEnd: true });
    await until(async () => (await said(await ask(router, 1))) !== "503 keys_unconfirmed", router);
    equal(await said(await ask(router, 2)), "401 invalid_api_key");
  } finally {
    await control.close();
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("a key's holder sees its limits and usage, and changes nothing", async () => {
  await using s = await setup({
    keys: [key(1, { paths: { items: ["/v1/embeddings"] } })],
    scopes: [
      scope("org-1", { requestsPerMinute: 100n }, ScopeKind.ORGANISATION),
      scope("key-1", { requestsPerMinute: 5n }),
    ],
  });
  await using router = await s.router();
  const call = (path: string, method = "GET") =>
    fetch(router.url + path, { method, headers: { "x-api-key": keyOf(1) } });
  const limits = await (await call("/v1/limits")).json();
  deepEqual(
    limits.data.map((
      { value, scope, effective }: Record<string, unknown>,
    ) => [value, scope, effective]),
    [[100, "organisation", false], [5, "key", true]],
  );
  const usage = await (await call("/v1/usage?since=7d")).json();
  equal(usage.data[0].requests, 3);
  equal(await said(await call("/v1/usage?since=x")), "400 invalid_request");
  const own = await (await call("/v1/keys/self")).json();
  equal(own.id, "key-1");
  ok(!JSON.stringify(own).includes(keyOf(1)));
  for (
    const [path, method] of [
      ["/v1/keys/self", "PATCH"],
      ["/v1/keys/self", "DELETE"],
      ["/v1/keys", "POST"],
      ["/v1/keys", "GET"],
      ["/v1/keys/key-2", "GET"],
    ] as const
  ) equal(await said(await call(path, method)), "403 read_only", `${method} ${path}`);
  const stranger = await fetch(`${router.url}/v1/keys`, { method: "POST" });
  equal(await said(stranger), "401 invalid_api_key");
});

Deno.test("where no key is wanted, one of the fleet's own still meets its limits, and all leave records", async () => {
  await using s = await setup({
    keys: [key(1)],
    scopes: [scope("key-1", { requestsPerMinute: 1n })],
  });
  s.control.share(ALL({ "key-1": 1 }));
  await using router = await s.router({ keys: { policy: "open" } });
  equal(await said(await router.post("/v1/chat/completions", CHAT)), "200 ok");
  const anything = { headers: { authorization: "Bearer no-key-needed" } };
  equal(await said(await router.post("/v1/chat/completions", CHAT, anything)), "200 ok");
  equal(await said(await ask(router, 1)), "200 ok");
  equal(await said(await ask(router, 1)), "429 rate_limit_exceeded");
  equal(await said(await ask(router, 5)), "401 invalid_api_key");
  await until(() => recordsOf(s.control).length >= 5, router);
  deepEqual(
    recordsOf(s.control).map(({ keyId, status, usage }) => [keyId, status, usage?.promptTokens]),
    [
      ["", 200, 11n],
      ["", 200, 11n],
      ["key-1", 200, 11n],
      ["key-1", 429, undefined],
      ["", 401, undefined],
    ],
  );
});

Deno.test("out of share, a router asks at once; cut off, it lives on the share it had", async () => {
  await using s = await setup({
    keys: [key(1), key(2)],
    scopes: [1, 2].map((n) => scope(`key-${n}`, { requestsPerMinute: 6_000n })),
  });
  const missing: number[] = [];
  s.control.share(({ demands }) => ({
    routers: 2,
    grants: demands.map(({ scopeId, dimension, missing: lacking }) => {
      missing.push(lacking);
      return { scopeId, dimension, share: 0, credit: lacking, validityMs: 1 };
    }),
  }));
  await using router = await s.router();
  // Nothing is saved up with a share of nothing: every request is asked for, and granted.
  for (let n = 0; n < 5; n++) equal(await said(await ask(router, 1)), "200 ok");
  ok(missing.filter((each) => each === 1).length >= 5);
  s.control.share(() => ({ routers: 2 }));
  equal(await said(await ask(router, 1)), "429 rate_limit_exceeded");
  await s.control.close();
  await until(async () => (await router.metric("heddle_router_watch_connected")) === 0, router);
  equal(await said(await ask(router, 1)), "429 rate_limit_exceeded");
  // Of this one control never said anything: it lives on half, as there were two routers.
  equal(await said(await ask(router, 2)), "200 ok");
});

Deno.test("a stream that its client leaves frees its place and is charged for what was seen", async () => {
  await using s = await setup({
    keys: [key(1)],
    scopes: [scope("key-1", { concurrentRequests: 1, tokensPerMinute: 1_000n })],
  });
  s.control.share(ALL({ "key-1": 1_000 }));
  s.engine.script((call) => {
    openStream(call);
    call.response.write(
      'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n',
    );
  });
  await using router = await s.router();
  const response = await ask(router, 1, { stream: true, max_tokens: 100 });
  const reader = response.body?.getReader();
  await reader?.read();
  equal(await said(await ask(router, 1)), "429 rate_limit_exceeded");
  await reader?.cancel();
  const record = await router.record(2);
  notEqual(record.usage, undefined);
  equal(record.outcome, "client_closed");
  equal(record.usage?.completionTokens, 1);
  equal(record.estimated, true);
  s.engine.script(HEALTHY);
  await until(async () => (await said(await ask(router, 1))) === "200 ok", router);
});

Deno.test("a control that answers too late costs nobody a first request", async () => {
  const limits = { requestsPerMinute: 5n, tokensPerMinute: 1_000n, concurrentRequests: 3 };
  await using s = await setup({
    keys: [key(1)],
    scopes: [scope("key-1", limits), scope("org-1", limits, ScopeKind.ORGANISATION)],
  });
  const late = Promise.withResolvers<void>();
  const grant = ALL({ "key-1": 5, "org-1": 5 });
  s.control.share(async (request) => {
    await late.promise;
    return create(ShareResponseSchema, await grant(request));
  });
  await using router = await s.router({}, { shareWaitMs: 20, firstShareWaitMs: 20 });
  equal(await said(await ask(router, 1)), "200 ok");
  late.resolve();
  equal(await said(await ask(router, 1)), "200 ok");
});

Deno.test("a router that has never heard of a limit waits for control's first word on it", async () => {
  await using s = await setup({
    keys: [key(1)],
    scopes: [scope("key-1", { concurrentRequests: 10 })],
  });
  const [held, slow] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  s.engine.script((call) => void held.promise.then(() => HEALTHY(call, 0)));
  // Another router has all but two of them, and control is slow to say so.
  const grant = ALL({ "key-1": 2 });
  s.control.share(async (request) => {
    await slow.promise;
    return create(ShareResponseSchema, await grant(request));
  });
  await using router = await s.router({}, { shareWaitMs: 20, firstShareWaitMs: 30_000 });
  const asked = Array.from({ length: 6 }, () => ask(router, 1));
  for (const from = performance.now(); performance.now() < from + 60;) await router.tick();
  equal(s.engine.calls.length, 0, "nobody is let in before control has said what is left");
  slow.resolve();
  await until(() => s.engine.calls.length === 2, router);
  held.resolve();
  const answers = await Promise.all((await Promise.all(asked)).map(said));
  deepEqual(answers.filter((each) => each === "200 ok").length, 2, answers.join());
});

Deno.test("a price per GPU-second counts every GPU of the replica, also after a restart without control", async () => {
  const price = { basis: { case: "gpuSecondMicro", value: 1_000_000n } } as const;
  await using s = await setup({ keys: [key(1)], prices: [{ model: "m", price }] });
  const check = async (router: RunningRouter) => {
    equal(await said(await ask(router, 1)), "200 ok");
    const { attempts, costMicro, pool } = await router.record(1);
    const [attempt] = attempts;
    ok(attempt !== undefined && attempt.engineMs > 0);
    deepEqual([attempt.gpus, pool], [2, "ib-a/h100-80g"]);
    equal(costMicro, Math.round(1_000 * 2 * attempt.engineMs));
  };
  {
    await using router = await s.router();
    await check(router);
  }
  await using again = await s.router({ control: { urls: ["http://127.0.0.1:9"] } });
  await check(again);
});
