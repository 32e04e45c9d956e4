/** What attackers send as keys, and around them: refused, never a fault of ours, and never written down. */
import { equal, match, ok } from "node:assert/strict";
import net from "node:net";
import { apiKeyFrom, apiKeyHash } from "@heddle/common/api_key";
import { startLogging } from "@heddle/common/log";
import { type FakeControl, startFakeControl } from "../edge/control/control_fake.ts";
import { CHAT, endpointsAt, type RunningRouter, runRouter } from "../testing/running_router.ts";
import { HEALTHY, startEngine } from "../testing/scripted_engine.ts";

const KEY = apiKeyFrom(new Uint8Array(32).fill(1));
const OTHER = apiKeyFrom(new Uint8Array(32).fill(2));

let log = "";
await startLogging({ format: "json", level: "debug", write: (line) => log += line });

async function site(over: Record<string, unknown> = {}): Promise<
  AsyncDisposable & { readonly router: RunningRouter; readonly control: FakeControl }
> {
  const control = await startFakeControl();
  const engine = await startEngine(HEALTHY);
  const folder = await Deno.makeTempDir();
  control.say({
    revision: { term: 1n, sequence: 1n },
    snapshot: true,
    snapshotEnd: true,
    keys: [
      {
        id: "key-1",
        projectId: "project-1",
        secrets: [{ sha256: apiKeyHash(KEY), prefix: KEY.slice(0, 16) }],
        scopeIds: ["org-1", "project-1", "key-1"],
        addresses: { items: ["127.0.0.0/8"] },
      },
      {
        id: "key-2",
        projectId: "project-2",
        secrets: [{ sha256: apiKeyHash(OTHER), prefix: OTHER.slice(0, 16) }],
        scopeIds: ["org-2", "project-2", "key-2"],
        addresses: { items: ["10.0.0.0/8"] },
        paths: { items: ["/v1/models"] },
      },
    ],
  });
  const router = await runRouter({
    name: "host/1",
    state_directory: folder,
    control: { urls: [control.url] },
    endpoints: endpointsAt(engine.url),
    keys: { policy: "control" },
    ...over,
  });
  while (router.notReady() !== undefined) await router.tick();
  return {
    router,
    control,
    async [Symbol.asyncDispose]() {
      await router[Symbol.asyncDispose]();
      await control.close();
      await engine[Symbol.asyncDispose]();
      await Deno.remove(folder, { recursive: true });
    },
  };
}

/** Sends bytes as they are, and gives the status line and what follows it. */
function raw(router: RunningRouter, head: string): Promise<string> {
  const { port } = new URL(router.url);
  return new Promise((resolve) => {
    let text = "";
    const socket = net.connect(Number(port), "127.0.0.1", () => {
      socket.write(Uint8Array.from(head, (char) => char.charCodeAt(0)));
    });
    socket.setEncoding("latin1");
    socket.on("data", (data) => text += data);
    socket.on("close", () => resolve(text));
    socket.on("error", () => resolve(text));
  });
}

const ATTACKS: readonly (readonly [what: string, key: string])[] = [
  ["SQL", "' OR '1'='1'; DROP TABLE tenancy; --"],
  ["SQL in a key's form", "sk-heddle-x'/**/OR/**/1=1--"],
  ["wildcards", "sk-heddle-%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%"],
  ["a template", "{{7*7}}${7*7}<%=7*7%>"],
  ["a path", "../../../../etc/passwd"],
  ["64 KiB", `sk-heddle-${"a".repeat(65_536)}`],
  ["a prefix of a key", KEY.slice(0, 30)],
  ["a key and more", `${KEY}x`],
  ["a key in capitals", KEY.toUpperCase()],
  ["a key with its checksum off by one", KEY.slice(0, -1) + (KEY.endsWith("0") ? "1" : "0")],
  ["a hash of a key", [...apiKeyHash(KEY)].map((b) => b.toString(16).padStart(2, "0")).join("")],
  ["a NUL", `${KEY}\0`],
  ["what is not ASCII", `${KEY.slice(0, -2)}\u00e9\u00fc`],
  ["the name of a prototype's member", "__proto__"],
];

Deno.test("no attack on the key is let in, is a fault of ours, or is written down", async () => {
  await using s = await site();
  log = "";
  for (const [what, key] of ATTACKS) {
    for (const header of [`authorization: Bearer ${key}`, `x-api-key: ${key}`, `api-key: ${key}`]) {
      const body = JSON.stringify(CHAT);
      const text = await raw(
        s.router,
        `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n${header}\r\n` +
          `content-type: application/json\r\ncontent-length: ${body.length}\r\n` +
          `connection: close\r\n\r\n${body}`,
      );
      match(
        text.split("\r\n")[0] ?? "",
        /^HTTP\/1\.1 (400|401|431) /,
        `${what}: ${header.slice(0, 20)}`,
      );
      ok(key.length < 6 || !text.includes(key), `${what} is in the answer`);
    }
    ok(key.length < 12 || !log.includes(key), `${what} is in the log`);
  }
  ok(!log.includes(KEY.slice(16)), "a key is in the log");
  ok(!/internal_error|hit a bug/.test(log), log);
});

Deno.test("keys that are equal in their first 64 characters are different keys", async () => {
  const folder = await Deno.makeTempDir();
  const start = "k".repeat(64);
  await Deno.writeTextFile(`${folder}/keys`, `${start}a\n`);
  await using engine = await startEngine(HEALTHY);
  await using router = await runRouter({
    state_directory: folder,
    endpoints: endpointsAt(engine.url),
    keys: { policy: "key_file", file: `${folder}/keys` },
  });
  const status = async (key: string) => {
    const response = await fetch(`${router.url}/v1/models`, { headers: { "x-api-key": key } });
    await response.body?.cancel();
    return response.status;
  };
  equal(await status(`${start}a`), 200);
  for (const key of [start, `${start}b`, `${start}aa`, `${start}A`]) equal(await status(key), 401);
  await Deno.remove(folder, { recursive: true });
});

Deno.test("what a client writes into Host, X-Forwarded-For and the path decides nothing", async () => {
  await using s = await site();
  // key-2 is for 10.0.0.0/8 and /v1/models only; the client says it is there.
  const forged = [
    "host: 10.1.2.3",
    "host: localhost\r\nx-forwarded-for: 10.1.2.3",
    "host: x\r\nx-forwarded-for: 10.1.2.3, 10.1.2.3\r\nx-forwarded-host: 10.1.2.3",
    "host: x\r\nforwarded: for=10.1.2.3\r\nx-real-ip: 10.1.2.3",
    "host: x\r\nx-original-url: /v1/models\r\nx-rewrite-url: /v1/models",
  ];
  for (const headers of forged) {
    const text = await raw(
      s.router,
      `GET /v1/models HTTP/1.1\r\n${headers}\r\nx-api-key: ${OTHER}\r\nconnection: close\r\n\r\n`,
    );
    match(text, /^HTTP\/1\.1 401 [\s\S]*address_not_allowed/, headers);
  }
  const targets = [
    "http://x/v1/models/../chat/completions",
    "/v1/chat/completions?x=/v1/models",
    "/v1/chat/completions#/v1/models",
  ];
  await using t = await site({ trusted_proxies: ["127.0.0.1"] });
  for (const target of targets) {
    const text = await raw(
      t.router,
      `POST ${target} HTTP/1.1\r\nhost: x\r\nx-forwarded-for: 10.1.2.3\r\nx-api-key: ${OTHER}\r\n` +
        "content-length: 2\r\nconnection: close\r\n\r\n{}",
    );
    match(text, /^HTTP\/1\.1 (400|403|404|405) /, `${target}: ${text.slice(0, 80)}`);
  }
});

/** Every route, and what a key of its own, a stranger and nobody get. */
const ROUTES: readonly (readonly [method: string, path: string])[] = [
  ["POST", "/v1/chat/completions"],
  ["POST", "/v1/completions"],
  ["POST", "/v1/embeddings"],
  ["POST", "/v1/responses"],
  ["POST", "/v1/messages"],
  ["POST", "/v1/messages/count_tokens"],
  ["POST", "/v1/audio/transcriptions"],
  ["POST", "/v1/rerank"],
  ["POST", "/v1/score"],
  ["POST", "/tokenize"],
  ["POST", "/detokenize"],
  ["GET", "/v1/models"],
  ["GET", "/v1/models/m"],
  ["GET", "/v1/limits"],
  ["GET", "/v1/usage"],
  ["GET", "/v1/keys/self"],
  ["GET", "/v1/keys"],
  ["GET", "/v1/keys/key-1"],
  ["PATCH", "/v1/keys/self"],
  ["DELETE", "/v1/keys/key-1"],
  ["POST", "/v1/keys"],
];

Deno.test("every route wants a key, and shows no key anything of another", async () => {
  await using s = await site();
  for (const [method, path] of ROUTES) {
    const call = async (headers: Record<string, string>) => {
      const response = await fetch(s.router.url + path, {
        method,
        headers: { ...headers, "content-type": "application/json" },
        ...(method === "GET" ? {} : { body: "{}" }),
      });
      return { status: response.status, text: await response.text() };
    };
    equal((await call({})).status, 401, `${method} ${path} without a key`);
    const bad = { authorization: "Bearer sk-heddle-nobody" };
    equal((await call(bad)).status, 401, `${method} ${path} with an unknown key`);
    const own = await call({ authorization: `Bearer ${KEY}` });
    ok(
      own.status !== 401 && own.status < 500 || own.status === 503,
      `${method} ${path}: ${own.status}`,
    );
    for (const foreign of ["key-2", "project-2", "org-2", OTHER.slice(0, 16)]) {
      ok(!own.text.includes(foreign), `${method} ${path} tells of ${foreign}`);
    }
    if (path.startsWith("/v1/keys") && path !== "/v1/keys/self" || method === "PATCH") {
      equal(own.status, 403, `${method} ${path}`);
    }
  }
});
