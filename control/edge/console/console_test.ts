/** The console's HTTP without a browser: who is let in, what they may, and what is answered. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { AdminService } from "@heddle/proto/gen/admin";
import { fakeAdmin } from "../admin/admin_fake.ts";
import { sha256, type TokenHolder } from "../identity/operators.ts";
import { Playground } from "./chat.ts";
import { consoleHandler, type Door } from "./console.ts";
import { startConsoleListener } from "./http/listener.ts";
import { Sessions } from "./http/session.ts";
import { Live } from "./live.ts";

const HOSTS = ["127.0.0.1"];

/** A console behind a real listener; its door is a parameter, since there is no TLS here. */
async function setUp(known?: TokenHolder, endpoint?: string) {
  const scheme = known === undefined ? "https" : "http";
  const door: Door = { scheme, hosts: HOSTS, known };
  const tokens = new Map<string, TokenHolder>();
  for (const role of ["viewer", "operator", "admin"] as const) {
    tokens.set(await sha256(`secret-${role}`), { name: `${role}-1`, role });
  }
  const live = new Live(() => new Map([["n1", { state: "ready" }]]), () => 0);
  const handler = consoleHandler({
    cluster: "test",
    version: "1",
    live,
    history: () => ({
      atS: [1],
      requests: [2],
      failures: [0],
      sloMisses: [0],
      inFlight: [0],
      waiting: [0],
      platinum: [null],
      gold: [null],
      silver: [null],
      bronze: [null],
      ttftP50Ms: [null],
      ttftP99Ms: [null],
      cacheShare: [null],
    }),
    preview: () =>
      Promise.resolve({ starts: [], stops: [], kept: 1, shortages: [], incomplete: false }),
    playground: new Playground(endpoint, undefined),
    routes: (to) => void to.service(AdminService, fakeAdmin().handlers),
    sessions: new Sessions({ secret: "key", tokens: () => tokens, now: Date.now }),
  });
  const listen = { host: "127.0.0.1", port: 0 };
  const listener = await startConsoleListener(
    listen,
    (request, response) => handler(request, response, door),
  );
  const { port } = listener.address;
  const origin = `${scheme}://127.0.0.1:${port}`;
  const get = (path: string, headers: Record<string, string> = {}) =>
    fetch(`http://127.0.0.1:${port}${path}`, { headers, redirect: "manual" });
  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    fetch(`http://127.0.0.1:${port}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", origin, ...headers },
      body: JSON.stringify(body),
    });
  return {
    live,
    get,
    post,
    /** Headers of who logged in with the token of this role. */
    async as(role: string) {
      const answer = await post("/console/login", { token: `secret-${role}` });
      await answer.body?.cancel();
      return { cookie: answer.headers.get("set-cookie")?.split(";")[0] ?? "" };
    },
    async [Symbol.asyncDispose]() {
      live.close();
      await listener.close();
    },
  };
}

/** Its status, once its body is read. */
async function statusOf(answer: Promise<Response>): Promise<number> {
  const { status, body } = await answer;
  await body?.cancel();
  return status;
}

const RPC = "/console/rpc/heddle.v1.AdminService";

Deno.test("the console's files are small, known again, and say what a browser may do", async () => {
  await using site = await setUp();
  const first = await site.get("/");
  await first.body?.cancel();
  deepEqual([first.status, first.headers.get("location")], [302, "/console/"]);
  const page = await site.get("/console/");
  match(await page.text(), /<div id="app">/);
  match(page.headers.get("content-security-policy") ?? "", /default-src 'none'/);
  ok(!/unsafe-inline|unsafe-eval|\*/.test(page.headers.get("content-security-policy") ?? ""));
  const script = await site.get("/console/app.js", { "accept-encoding": "gzip" });
  equal(script.headers.get("content-encoding"), "gzip");
  ok((await script.text()).length > 50_000);
  ok(Number(script.headers.get("content-length")) < 60_000);
  const etag = page.headers.get("etag") ?? "";
  equal(await statusOf(site.get("/console/", { "if-none-match": etag })), 304);
});

Deno.test("nobody gets anything but the page without logging in", async () => {
  await using site = await setUp();
  for (const path of ["session", "live?topics=nodes", "traffic?model=*", "nothing"]) {
    equal(await statusOf(site.get(`/console/${path}`)), 401, path);
  }
  for (const path of [`${RPC}/ListNodes`, "/console/preview", "/console/chat"]) {
    equal(await statusOf(site.post(path, {})), 401, path);
  }
  for (const path of ["/heddle.v1.AdminService/OfTomorrow", "/consoles", "/favicon.ico"]) {
    equal(await statusOf(site.post(path, {})), 404, path);
  }
  equal(await statusOf(site.post("/console/login", { token: "guessed" })), 401);
  equal(await statusOf(site.post("/console/login", "no object")), 401);
  const forged = { cookie: `heddle_console=${await sha256("secret-admin")}.9999999999.00` };
  equal(await statusOf(site.get("/console/session", forged)), 401);
});

Deno.test("a session may what its role may", async () => {
  await using site = await setUp();
  const cases = [
    [`${RPC}/ListNodes`, {}, [200, 200, 200]],
    [`${RPC}/Cordon`, { node: "gpu-01" }, [403, 200, 200]],
    [`${RPC}/ApplyCatalog`, { text: "models: []", yes: true }, [403, 403, 200]],
    ["/console/preview", { kind: "cordon", node: "gpu-01" }, [403, 200, 200]],
    ["/console/chat", {}, [403, 409, 409]],
  ] as const;
  for (const [index, role] of ["viewer", "operator", "admin"].entries()) {
    const headers = await site.as(role);
    for (const [path, body, statuses] of cases) {
      equal(await statusOf(site.post(path, body, headers)), statuses[index], `${role} ${path}`);
    }
    const visit = await (await site.get("/console/session", headers)).json();
    deepEqual([visit.name, visit.role, visit.canLogOut], [`${role}-1`, role, true]);
  }
});

Deno.test("a playground whose router is not there says where it looked, and why it failed", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  listener.close();
  await using site = await setUp(undefined, `http://127.0.0.1:${listener.addr.port}/v1`);
  const answer = await site.post("/console/chat", {}, await site.as("operator"));
  match(
    await answer.text(),
    /Cannot reach the router at http:\/\/127\.0\.0\.1:\d+\/v1 .*: tcp connect error: Connection refused/,
  );
});

Deno.test("requests from another site, or under another name, are refused", async () => {
  await using site = await setUp();
  const headers = await site.as("admin");
  const cordon = (more: Record<string, string>) =>
    statusOf(site.post(`${RPC}/Cordon`, { node: "gpu-01" }, { ...headers, ...more }));
  equal(await cordon({}), 200);
  equal(await cordon({ origin: "https://evil.example" }), 403);
  equal(await cordon({ origin: "null" }), 403);
  equal(await statusOf(site.post("/console/login", {}, { origin: "https://evil.example" })), 403);
});

Deno.test("who needs no session is known, and cannot log out", async () => {
  await using site = await setUp({ name: "local", role: "admin" });
  const visit = await (await site.get("/console/session")).json();
  deepEqual([visit.name, visit.canLogOut, visit.playground], ["local", false, false]);
  equal(await statusOf(site.get("/console/nothing")), 404);
  equal(await statusOf(site.get("/console/live?topics=secrets")), 400);
  deepEqual((await (await site.get("/console/traffic?model=*")).json()).requests, [2]);
});

Deno.test("a stream begins with everything that there is", async () => {
  await using site = await setUp({ name: "local", role: "admin" });
  const answer = await site.get("/console/live?topics=nodes");
  equal(answer.headers.get("content-type"), "text/event-stream");
  const reader = answer.body?.getReader();
  const text = new TextDecoder().decode((await reader?.read())?.value);
  match(text, /^data: \{"topic":"nodes","whole":true,"now":0,"set":\{"n1":\{"state":"ready"\}\}/);
  equal(site.live.size, 1);
  await reader?.cancel();
});
