import { Buffer } from "node:buffer";
import assert from "node:assert/strict";
import { createLeaf, createRoot } from "@heddle/common/pki";
import { createUpstreamPool, UPSTREAM_DEFAULTS } from "./upstream.ts";
import { startFakeEngine } from "./upstream_engine_fake.ts";
import { UpstreamError } from "./upstream_error.ts";
import type { UpstreamRequest, UpstreamTls } from "./upstream_request.ts";

const now = Date.now();
const root = await createRoot({ cluster: "test", validMs: 3_600_000, now });
const other = await createRoot({ cluster: "other", validMs: 3_600_000, now });
const leaf = await createLeaf(root, {
  identity: { cluster: "test", role: "router", name: "engine" },
  hosts: ["engine.test", "127.0.0.1"],
  validMs: 3_600_000,
  now,
});
const SERVER = { key: leaf.keyPem, cert: leaf.certificatePem, ALPNProtocols: ["http/1.1"] };
const POST: UpstreamRequest = { method: "POST", path: "/", headers: {}, body: Buffer.from("{}") };

async function ask(tls: UpstreamTls, times = 1): Promise<{ texts: string[]; connections: number }> {
  await using engine = await startFakeEngine(({ socket }) => {
    socket.write("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc");
  }, { tls: SERVER });
  using pool = createUpstreamPool(UPSTREAM_DEFAULTS);
  const texts: string[] = [];
  for (let n = 0; n < times; n++) {
    const target = { host: "127.0.0.1", port: engine.port, tls };
    const answer = await pool.request(target, POST, new AbortController().signal);
    let text = "";
    for await (const part of answer.body) text += Buffer.from(part).toString();
    texts.push(text);
  }
  return { texts, connections: new Set(engine.calls.map((call) => call.connection)).size };
}

Deno.test("request() speaks TLS by name and by address, and keeps the connection", async () => {
  for (
    const tls of [{ ca: root.certificatePem, serverName: "engine.test" }, {
      ca: root.certificatePem,
    }]
  ) {
    assert.deepEqual(await ask(tls, 2), { texts: ["abc", "abc"], connections: 1 });
  }
});

for (
  const [what, tls] of [
    ["an authority that it does not trust", { ca: other.certificatePem }],
    ["the built-in authorities", {}],
    ["another name", { ca: root.certificatePem, serverName: "elsewhere.test" }],
  ] as const
) {
  Deno.test(`request() refuses a certificate by ${what}`, async () => {
    await assert.rejects(ask(tls), (error) => {
      assert.ok(error instanceof UpstreamError, String(error));
      assert.equal(error.reason, "tls_failed");
      return true;
    });
  });
}

Deno.test("request() refuses to speak TLS to a plain server, and plain to a TLS server", async () => {
  await using plain = await startFakeEngine(() => {});
  await using secure = await startFakeEngine(() => {}, { tls: SERVER });
  using pool = createUpstreamPool({
    ...UPSTREAM_DEFAULTS,
    connectTimeoutMs: 300,
    firstByteTimeoutMs: 300,
  });
  const never = new AbortController().signal;
  const wrong = [
    { host: "127.0.0.1", port: plain.port, tls: { ca: root.certificatePem } },
    { host: "127.0.0.1", port: secure.port },
  ];
  for (const target of wrong) {
    await assert.rejects(pool.request(target, POST, never), UpstreamError);
  }
  assert.deepEqual(pool.connections(), { busy: 0, idle: 0 });
});
