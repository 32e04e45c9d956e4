import { Buffer } from "node:buffer";
import assert from "node:assert/strict";
import { connect as connectTcp, createServer, type Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { type FakeCall, startFakeEngine } from "./upstream_engine_fake.ts";
import { createUpstreamPool, UPSTREAM_DEFAULTS, type UpstreamOptions } from "./upstream.ts";
import { UpstreamError, type UpstreamFailure } from "./upstream_error.ts";
import type { UpstreamRequest } from "./upstream_request.ts";

const OK3 = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc";
const CHUNKED = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
const never = new AbortController().signal;

function pool(options: Partial<UpstreamOptions> = {}) {
  return createUpstreamPool({ ...UPSTREAM_DEFAULTS, ...options });
}

function post(options: Partial<UpstreamRequest> = {}): UpstreamRequest {
  return { method: "POST", path: "/v1/x", headers: {}, body: Buffer.from("{}"), ...options };
}

async function text(body: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const part of body) parts.push(part);
  return Buffer.concat(parts).toString();
}

async function failsWith(promise: Promise<unknown>, reason: UpstreamFailure): Promise<void> {
  await assert.rejects(promise, (error) => {
    assert.ok(error instanceof UpstreamError, String(error));
    assert.equal(error.reason, reason);
    return true;
  });
}

function say(...parts: string[]): (call: FakeCall) => void {
  return ({ socket }) => parts.forEach((part) => void socket.write(part));
}

Deno.test("request() sends a whole request and gives the answer", async () => {
  await using engine = await startFakeEngine(say("HTTP/1.1 200 OK\r\nX-A: 1\r\n", OK3.slice(17)));
  using upstream = pool();
  const target = { host: "127.0.0.1", port: engine.port };
  const headers = { "content-type": "application/json", authorization: "Bearer k" };
  const answer = await upstream.request(target, post({ headers }), never);
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get("x-a"), "1");
  assert.equal(await text(answer.body), "abc");
  assert.equal(
    engine.calls[0]?.text,
    "POST /v1/x HTTP/1.1\r\ncontent-type: application/json\r\nauthorization: Bearer k\r\n" +
      `host: 127.0.0.1:${engine.port}\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\n{}`,
  );
});

Deno.test("request() uses a connection again, the one used last first", async () => {
  await using engine = await startFakeEngine(say(OK3));
  using upstream = pool();
  const target = { host: "127.0.0.1", port: engine.port };
  for (let n = 0; n < 3; n++) {
    assert.equal(await text((await upstream.request(target, post(), never)).body), "abc");
    assert.deepEqual(upstream.connections(), { busy: 0, idle: 1 });
  }
  assert.deepEqual(engine.calls.map((call) => call.connection), [0, 0, 0]);
});

Deno.test("request() gives each part of a stream as it comes", async () => {
  await using engine = await startFakeEngine(say(CHUNKED));
  using upstream = pool();
  const answer = await upstream.request({ host: "127.0.0.1", port: engine.port }, post(), never);
  const reader = answer.body[Symbol.asyncIterator]();
  for (const part of ["one", "two", "three"]) {
    engine.calls[0]?.socket.write(`${part.length.toString(16)}\r\n${part}\r\n`);
    assert.equal(Buffer.from((await reader.next()).value).toString(), part);
  }
  engine.calls[0]?.socket.write("0\r\n\r\n");
  assert.equal((await reader.next()).done, true);
  assert.deepEqual(upstream.connections(), { busy: 0, idle: 1 });
});

for (
  const [what, end] of [
    ["closed", (call: FakeCall) => void call.socket.end()],
    ["reset", (call: FakeCall) => void call.socket.resetAndDestroy()],
  ] as const
) {
  Deno.test(`request() replaces a kept connection that is ${what} as the request comes`, async () => {
    await using engine = await startFakeEngine((call) =>
      call.onConnection === 0 ? say(OK3)(call) : end(call)
    );
    using upstream = pool();
    const target = { host: "127.0.0.1", port: engine.port };
    await text((await upstream.request(target, post(), never)).body);
    assert.equal(await text((await upstream.request(target, post(), never)).body), "abc");
    assert.deepEqual(engine.calls.map((call) => call.connection), [0, 0, 1]);
  });

  Deno.test(`request() does not try again when a fresh connection is ${what}`, async () => {
    await using engine = await startFakeEngine(end);
    using upstream = pool();
    const target = { host: "127.0.0.1", port: engine.port };
    await failsWith(upstream.request(target, post(), never), "reset_before_head");
    assert.equal(engine.calls.length, 1);
    assert.deepEqual(upstream.connections(), { busy: 0, idle: 0 });
  });
}

Deno.test("request() does not try again after a byte of an answer", async () => {
  await using engine = await startFakeEngine((call) => {
    if (call.onConnection === 0) return say(OK3)(call);
    call.socket.end("HTTP/1.1 ");
  });
  using upstream = pool();
  const target = { host: "127.0.0.1", port: engine.port };
  await text((await upstream.request(target, post(), never)).body);
  await failsWith(upstream.request(target, post(), never), "reset_before_head");
  assert.equal(engine.calls.length, 2);
});

Deno.test("request() opens a fresh connection when the engine has closed the kept one", async () => {
  await using engine = await startFakeEngine(say(OK3));
  using upstream = pool();
  const target = { host: "127.0.0.1", port: engine.port };
  await text((await upstream.request(target, post(), never)).body);
  const [first] = engine.calls;
  first?.socket.end();
  await first?.closed;
  assert.equal(await text((await upstream.request(target, post(), never)).body), "abc");
  assert.equal(upstream.connections().idle, 1);
});

const NOT_KEPT: readonly [what: string, answer: string][] = [
  ["says close", "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 3\r\n\r\nabc"],
  ["speaks HTTP/1.0", "HTTP/1.0 200 OK\r\ncontent-length: 3\r\n\r\nabc"],
  ["keeps for less than a second", `HTTP/1.1 200 OK\r\nkeep-alive: timeout=1${OK3.slice(15)}`],
  ["says more than it was asked", `${OK3}HTTP/1.1 200 OK\r\n\r\n`],
];

for (const [what, answer] of NOT_KEPT) {
  Deno.test(`request() does not keep the connection of an engine that ${what}`, async () => {
    await using engine = await startFakeEngine(say(answer));
    using upstream = pool();
    const target = { host: "127.0.0.1", port: engine.port };
    for (let n = 0; n < 2; n++) {
      assert.equal(await text((await upstream.request(target, post(), never)).body), "abc");
    }
    assert.deepEqual(engine.calls.map((call) => call.connection), [0, 1]);
    assert.deepEqual(upstream.connections(), { busy: 0, idle: 0 });
  });
}

Deno.test("request() closes a kept connection on which the engine speaks unasked", async () => {
  await using engine = await startFakeEngine(say(OK3));
  using upstream = pool();
  await text(
    (await upstream.request({ host: "127.0.0.1", port: engine.port }, post(), never)).body,
  );
  engine.calls[0]?.socket.write("HTTP/1.1 408 Request Timeout\r\n\r\n");
  await engine.calls[0]?.closed;
  assert.deepEqual(upstream.connections(), { busy: 0, idle: 0 });
});

Deno.test("request() waits without end where it is told to, also after an answer with a time", async () => {
  await using engine = await startFakeEngine(({ socket, onConnection }) => {
    // Longer than a timer that cannot count so far would take to strike.
    setTimeout(() => socket.write(OK3), onConnection === 0 ? 0 : 800);
  });
  using upstream = pool();
  const target = { host: "127.0.0.1", port: engine.port };
  for (const firstByteTimeoutMs of [60_000, Infinity]) {
    const answer = await upstream.request(target, post({ firstByteTimeoutMs }), never);
    assert.equal(await text(answer.body), "abc");
  }
});

Deno.test("request() keeps an unused connection no longer than keepAliveMs", async () => {
  await using engine = await startFakeEngine(say(OK3));
  using upstream = pool({ keepAliveMs: 20 });
  await text(
    (await upstream.request({ host: "127.0.0.1", port: engine.port }, post(), never)).body,
  );
  await engine.calls[0]?.closed;
  assert.deepEqual(upstream.connections(), { busy: 0, idle: 0 });
});

Deno.test("request() called off before the head closes the connection at once", async () => {
  await using engine = await startFakeEngine(() => {});
  using upstream = pool();
  const client = new AbortController();
  const asked = upstream.request({ host: "127.0.0.1", port: engine.port }, post(), client.signal);
  const call = await engine.called(1);
  client.abort();
  await failsWith(asked, "aborted");
  await call.closed;
  assert.deepEqual(upstream.connections(), { busy: 0, idle: 0 });
});

Deno.test("request() called off before it began sends nothing", async () => {
  await using engine = await startFakeEngine(say(OK3));
  using upstream = pool();
  const target = { host: "127.0.0.1", port: engine.port };
  await failsWith(upstream.request(target, post(), AbortSignal.abort()), "aborted");
  assert.equal(engine.calls.length, 0);
});

for (const how of ["the signal", "destroy()", "leaving the loop", "disposing the pool"] as const) {
  Deno.test(`the engine is freed in the middle of a stream by ${how}`, async () => {
    await using engine = await startFakeEngine(say(CHUNKED, "1\r\na\r\n"));
    const upstream = pool();
    const client = new AbortController();
    const target = { host: "127.0.0.1", port: engine.port };
    const answer = await upstream.request(target, post(), client.signal);
    const read = (async () => {
      for await (const _ of answer.body) {
        if (how === "leaving the loop") break;
        if (how === "the signal") client.abort();
        if (how === "destroy()") answer.destroy();
        if (how === "disposing the pool") upstream[Symbol.dispose]();
      }
    })();
    if (how === "leaving the loop") await read;
    else await failsWith(read, "aborted");
    await engine.calls[0]?.closed;
    answer.destroy();
    assert.deepEqual(upstream.connections(), { busy: 0, idle: 0 });
    upstream[Symbol.dispose]();
  });
}

Deno.test("destroy() after the end leaves the connection to the next request", async () => {
  await using engine = await startFakeEngine(say(OK3));
  using upstream = pool();
  const target = { host: "127.0.0.1", port: engine.port };
  const first = await upstream.request(target, post(), never);
  await text(first.body);
  const second = await upstream.request(target, post(), never);
  first.destroy();
  assert.equal(await text(second.body), "abc");
});

Deno.test("request() tells a refused connection from others", async () => {
  const engine = await startFakeEngine(() => {});
  await engine[Symbol.asyncDispose]();
  using upstream = pool();
  const target = { host: "127.0.0.1", port: engine.port };
  await failsWith(upstream.request(target, post(), never), "connect_refused");
  const nameless = { host: "no-such-host.invalid", port: 1 };
  await failsWith(upstream.request(nameless, post(), never), "connect_failed");
  assert.deepEqual(upstream.connections(), { busy: 0, idle: 0 });
});

Deno.test("request() gives up on a connection that does not get ready", async () => {
  // A TCP listener that never answers the TLS handshake.
  await using engine = await startFakeEngine(() => {});
  using upstream = pool({ connectTimeoutMs: 30 });
  const target = { host: "127.0.0.1", port: engine.port, tls: {} };
  await failsWith(upstream.request(target, post(), never), "connect_timeout");
  assert.deepEqual(upstream.connections(), { busy: 0, idle: 0 });
});

Deno.test("request() gives up on an engine that answers nothing", async () => {
  await using engine = await startFakeEngine(() => {});
  using upstream = pool();
  const asked = post({ firstByteTimeoutMs: 30 });
  await failsWith(
    upstream.request({ host: "127.0.0.1", port: engine.port }, asked, never),
    "first_byte_timeout",
  );
  await engine.calls[0]?.closed;
});

Deno.test("request() gives up on an engine that sends its head and no body", async () => {
  await using engine = await startFakeEngine(say(CHUNKED));
  using upstream = pool({ firstByteTimeoutMs: 30 });
  const answer = await upstream.request({ host: "127.0.0.1", port: engine.port }, post(), never);
  await failsWith(text(answer.body), "first_byte_timeout");
});

/** Stops this process, as a busy machine does: its timers are due before it sees what arrived. */
function stop(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

Deno.test("request() blames no engine for a time in which this process stood still", async () => {
  await using engine = await startFakeEngine(({ socket }) => {
    socket.write(CHUNKED);
    stop(200);
    socket.write("1\r\na\r\n");
    stop(200);
    socket.write("1\r\nb\r\n0\r\n\r\n");
    stop(200);
  });
  const times = { connectTimeoutMs: 30, firstByteTimeoutMs: 30, idleTimeoutMs: 30 };
  using upstream = pool(times);
  const target = { host: "127.0.0.1", port: engine.port };
  const asked = upstream.request(target, post(), never);
  stop(200);
  assert.equal(await text((await asked).body), "ab");
});

Deno.test("request() gives up on silence between two parts", async () => {
  await using engine = await startFakeEngine(say(CHUNKED, "1\r\na\r\n"));
  using upstream = pool({ idleTimeoutMs: 30 });
  const answer = await upstream.request({ host: "127.0.0.1", port: engine.port }, post(), never);
  await failsWith(text(answer.body), "idle_timeout");
  await engine.calls[0]?.closed;
});

for (
  const [what, answer, reason] of [
    ["a body that is cut", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc", "cut"],
    ["chunks that are cut", `${CHUNKED}3\r\nabc\r\n`, "cut"],
    ["broken chunks", `${CHUNKED}3\r\nabcd\r\n`, "body_invalid"],
  ] as const
) {
  Deno.test(`request() gives what came, then throws, for ${what}`, async () => {
    await using engine = await startFakeEngine(({ socket }) => void socket.end(answer));
    using upstream = pool();
    const { body } = await upstream.request(
      { host: "127.0.0.1", port: engine.port },
      post(),
      never,
    );
    let seen = "";
    const read = (async () => {
      for await (const part of body) seen += Buffer.from(part).toString();
    })();
    await failsWith(read, reason);
    assert.equal(seen, "abc");
    assert.deepEqual(upstream.connections(), { busy: 0, idle: 0 });
  });
}

Deno.test("request() throws when a body without a length is reset", async () => {
  await using engine = await startFakeEngine(say("HTTP/1.1 200 OK\r\n\r\nabc"));
  using upstream = pool();
  const { body } = await upstream.request({ host: "127.0.0.1", port: engine.port }, post(), never);
  const reader = body[Symbol.asyncIterator]();
  await reader.next();
  engine.calls[0]?.socket.resetAndDestroy();
  await failsWith(reader.next(), "cut");
});

Deno.test("request() refuses an answer that could be read in two ways", async () => {
  await using engine = await startFakeEngine(
    say("HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
  );
  using upstream = pool();
  const target = { host: "127.0.0.1", port: engine.port };
  await failsWith(upstream.request(target, post(), never), "head_invalid");
  await engine.calls[0]?.closed;
});

Deno.test("request() holds the engine back while nobody reads, and loses nothing", async () => {
  const total = 64 * 1024 * 1024;
  let sent = 0;
  const stalled = Promise.withResolvers<void>();
  const part = Buffer.alloc(262_144, "x");
  // Stalled: sockets and kernel are full, and for a while nothing has moved.
  let quiet = setTimeout(stalled.resolve, 5_000);
  await using engine = await startFakeEngine(({ socket }) => {
    socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${total}\r\n\r\n`);
    const flood = (): void => {
      clearTimeout(quiet);
      quiet = setTimeout(stalled.resolve, 2_500);
      while (sent < total) {
        sent += part.length;
        if (!socket.write(part)) break;
      }
    };
    socket.on("drain", flood);
    flood();
  });
  using upstream = pool({ idleTimeoutMs: 1_000 });
  const { body } = await upstream.request({ host: "127.0.0.1", port: engine.port }, post(), never);
  await stalled.promise;
  assert.ok(sent < 24 * 1024 * 1024, `the engine could send ${sent} bytes to nobody`);
  let got = 0;
  for await (const bytes of body) got += bytes.length;
  clearTimeout(quiet);
  assert.equal(got, total);
  assert.deepEqual(upstream.connections(), { busy: 0, idle: 1 });
});

Deno.test("request() sends a large body whole", async () => {
  await using engine = await startFakeEngine(say(OK3));
  using upstream = pool();
  const body = Buffer.alloc(2 * 1024 * 1024, "x");
  const target = { host: "127.0.0.1", port: engine.port };
  assert.equal(await text((await upstream.request(target, post({ body }), never)).body), "abc");
  assert.ok(engine.calls[0]?.text.endsWith(`content-length: ${body.length}\r\n\r\n${body}`));
});

Deno.test("request() does not keep a connection that was answered before the request was out", async () => {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => {});
    socket.once("data", () => {
      socket.pause();
      socket.write("HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nabc");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  assert.ok(address !== null && typeof address === "object");
  using upstream = pool();
  const target = { host: "127.0.0.1", port: address.port };
  const large = post({ body: Buffer.alloc(32 * 1024 * 1024) });
  const answer = await upstream.request(target, large, never);
  assert.equal(answer.status, 413);
  assert.equal(await text(answer.body), "abc");
  assert.deepEqual(upstream.connections(), { busy: 0, idle: 0 });
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
});

Deno.test("request() unpacks an answer that was compressed unasked", async () => {
  const packed = gzipSync("data: 1\n\n");
  await using engine = await startFakeEngine(({ socket }) => {
    socket.write(
      `HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: ${packed.length}\r\n\r\n`,
    );
    socket.write(packed);
  });
  using upstream = pool();
  const answer = await upstream.request({ host: "127.0.0.1", port: engine.port }, post(), never);
  assert.equal(await text(answer.body), "data: 1\n\n");
  assert.deepEqual([...answer.headers], []);
});

Deno.test("request() throws for a compressed answer that is corrupt", async () => {
  await using engine = await startFakeEngine(
    say("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 3\r\n\r\nabc"),
  );
  using upstream = pool();
  const answer = await upstream.request({ host: "127.0.0.1", port: engine.port }, post(), never);
  await failsWith(text(answer.body), "body_invalid");
});

Deno.test("request() opens no more connections than it may", async () => {
  await using engine = await startFakeEngine(say(CHUNKED));
  using upstream = pool({ connectionsPerTargetMax: 2 });
  const target = { host: "127.0.0.1", port: engine.port };
  const first = await upstream.request(target, post(), never);
  await upstream.request(target, post(), never);
  await failsWith(upstream.request(target, post(), never), "connections_full");
  first.destroy();
  await upstream.request(target, post(), never);
});

Deno.test("forget() closes idle connections to that target only", async () => {
  await using one = await startFakeEngine(say(OK3));
  await using two = await startFakeEngine(say(OK3));
  using upstream = pool();
  for (const { port } of [one, two]) {
    await text((await upstream.request({ host: "127.0.0.1", port }, post(), never)).body);
  }
  upstream.forget({ host: "127.0.0.1", port: one.port });
  await one.calls[0]?.closed;
  assert.deepEqual(upstream.connections(), { busy: 0, idle: 1 });
});

const HOSTILE: readonly [what: string, request: Partial<UpstreamRequest>][] = [
  ["a line end in a value", { headers: { x: "a\r\nb: c" } }],
  ["a line end in a name", { headers: { "a\r\nb": "c" } }],
  ["a NUL", { headers: { x: "a\0" } }],
  ["a character beyond latin-1", { headers: { x: "日" } }],
  ["a length of its own", { headers: { "Content-Length": "0" } }],
  ["a transfer coding", { headers: { "transfer-encoding": "chunked" } }],
  ["a space in the path", { path: "/a b" }],
  ["a line end in the path", { path: "/a\r\nb" }],
  ["another host's path", { path: "http://elsewhere/" }],
  ["a strange method", { method: "get it" }],
];

for (const [what, request] of HOSTILE) {
  Deno.test(`request() refuses to send ${what}`, async () => {
    using upstream = pool();
    const target = { host: "127.0.0.1", port: 1 };
    await failsWith(upstream.request(target, post(request), never), "request_invalid");
  });
}

const ipv6 = await new Promise<boolean>((resolve) => {
  const probe = connectTcp({ host: "::1", port: 1 });
  probe.on("error", (error) => resolve("code" in error && error.code === "ECONNREFUSED"));
});

Deno.test({
  name: "request() reaches IPv6 engines, written with or without brackets",
  ignore: !ipv6,
  fn: async () => {
    await using engine = await startFakeEngine(say(OK3), { host: "::1" });
    using upstream = pool();
    for (const host of ["::1", "[::1]"]) {
      const answer = await upstream.request({ host, port: engine.port }, post(), never);
      assert.equal(await text(answer.body), "abc");
    }
    for (const call of engine.calls) assert.match(call.text, /\r\nhost: \[::1\]:[0-9]+\r\n/);
  },
});
