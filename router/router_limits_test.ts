/** What a router does at its bounds: slow sides, large bodies, keys, stops, fallbacks. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import http from "node:http";
import net from "node:net";
import { CHAT, endpointsAt, runRouter } from "./testing/running_router.ts";
import {
  CHAT_STREAM,
  chunk,
  cut,
  DONE_EVENT,
  HEALTHY,
  openStream,
  sendJson,
  startEngine,
  USAGE_EVENT,
} from "./testing/scripted_engine.ts";

Deno.test("a client that waits hears comments, and content or an error still follows", async () => {
  let answer = () => {};
  await using engine = await startEngine((call) => {
    answer = () => {
      openStream(call);
      call.response.end(CHAT_STREAM.join(""));
    };
  });
  await using router = await runRouter({ endpoints: endpointsAt(engine.url) }, { heartbeatMs: 20 });
  const response = await router.post("/v1/chat/completions", { ...CHAT, stream: true });
  equal(response.status, 200);
  equal(response.headers.get("x-heddle-replica"), null);
  await engine.called(1);
  answer();
  const text = await response.text();
  match(text, /^(: ping\n)+data: /);
  equal(
    text.replace(/^(: ping\n)+/, ""),
    CHAT_STREAM.filter((each) => each !== USAGE_EVENT).join(""),
  );
});

Deno.test("after a heartbeat, another replica may still take over, or an error event follows", async () => {
  let fail = () => {};
  await using bad = await startEngine((call) => {
    fail = () => sendJson(call, 500, { error: { message: "boom" } });
  });
  await using good = await startEngine(HEALTHY);
  const [first, second] = endpointsAt(bad.url, good.url);
  for (const endpoints of [[{ ...first, priority: 1 }, second], [first]]) {
    await using router = await runRouter({ endpoints }, { heartbeatMs: 20 });
    const response = await router.post("/v1/chat/completions", { ...CHAT, stream: true });
    const calls = bad.calls.length;
    ok(calls > 0);
    fail();
    if (endpoints.length === 2) {
      const text = await response.text();
      ok(text.endsWith(DONE_EVENT) && !text.includes("error"));
      continue;
    }
    let text = "";
    let broken = false;
    try {
      const decoder = new TextDecoder();
      for await (const part of response.body ?? []) text += decoder.decode(part, { stream: true });
    } catch {
      broken = true;
    }
    ok(broken);
    match(text, /^(: ping\n)+data: \{"error":/);
  }
});

Deno.test("a silent engine is given up for another one", async () => {
  await using silent = await startEngine(() => {});
  await using stuck = await startEngine((call) => {
    openStream(call);
    call.response.write(chunk({ role: "assistant", content: "" }));
  });
  await using good = await startEngine(HEALTHY);
  const [a, b, c] = endpointsAt(silent.url, stuck.url, good.url);
  await using router = await runRouter({
    endpoints: [{ ...a, priority: 2 }, { ...b, priority: 1 }, c],
    timeouts: { first_byte: "50ms", between_chunks: "50ms", first_byte_per_1k_tokens: "0s" },
  });
  const response = await router.post("/v1/chat/completions", { ...CHAT, stream: true });
  equal(response.headers.get("x-heddle-replica"), "e2");
  ok((await response.text()).endsWith(DONE_EVENT));
  await Promise.all([silent.calls[0]?.aborted, stuck.calls[0]?.aborted]);
});

Deno.test("an engine that is silent for ever is a 504 when there is no other", async () => {
  await using silent = await startEngine(() => {});
  await using router = await runRouter({
    endpoints: endpointsAt(silent.url),
    timeouts: { first_byte: "50ms", whole_answer: "90ms", first_byte_per_1k_tokens: "0s" },
  });
  for (const stream of [true, false]) {
    const response = await router.post("/v1/chat/completions", { ...CHAT, stream });
    deepEqual([response.status, (await response.json()).error.code], [504, "engine_timeout"]);
  }
});

Deno.test("a request that breaks every engine it meets stops after three", async () => {
  const engines = await Promise.all(
    Array.from({ length: 5 }, () => startEngine(cut)),
  );
  try {
    await using router = await runRouter({ endpoints: endpointsAt(...engines.map((e) => e.url)) });
    const response = await router.post("/v1/chat/completions", CHAT);
    deepEqual([response.status, (await response.json()).error.code], [502, "engine_failed"]);
    equal(engines.reduce((sum, { calls }) => sum + calls.length, 0), 3);
  } finally {
    for (const engine of engines) await engine[Symbol.asyncDispose]();
  }
});

Deno.test("full engines are a 503 with their Retry-After, and are asked again", async () => {
  await using full = await startEngine((call) => {
    call.response.writeHead(503, { "content-type": "application/json", "retry-after": "7" });
    call.response.end(JSON.stringify({ error: { message: "queue is full" } }));
  });
  await using router = await runRouter({ endpoints: endpointsAt(full.url) });
  for (const calls of [1, 2]) {
    const response = await router.post("/v1/chat/completions", CHAT);
    const { error } = await response.json();
    deepEqual([response.status, error.code], [503, "engine_saturated"]);
    equal(response.headers.get("retry-after"), "7");
    equal(full.calls.length, calls);
  }
  equal(await router.metric('heddle_router_breaker_state{replica="e0",state="closed"}'), 1);
});

Deno.test("a fallback answers when a model cannot, unless the client does not want it", async () => {
  await using bad = await startEngine((call) =>
    sendJson(call, 500, { error: { message: "boom" } })
  );
  await using good = await startEngine(HEALTHY);
  await using router = await runRouter({
    endpoints: [
      { name: "a", url: bad.url, models: [{ name: "big" }] },
      { name: "b", url: good.url, models: [{ name: "small", served_name: "served" }] },
    ],
    models: [{ name: "big", fallbacks: ["small"] }],
  });
  const body = { ...CHAT, model: "big" };
  const response = await router.post("/v1/chat/completions", body);
  equal(response.status, 200);
  equal(response.headers.get("x-heddle-model"), "small");
  await response.body?.cancel();
  equal(JSON.parse(good.calls[0]?.body ?? "").model, "served");
  const strict = await router.post("/v1/chat/completions", body, {
    headers: { "x-heddle-no-fallback": "1" },
  });
  equal(strict.status, 502);
  await strict.body?.cancel();
});

Deno.test("bodies beyond the caps, in the wrong coding or of the wrong form reach no engine", async () => {
  await using engine = await startEngine(HEALTHY);
  await using router = await runRouter({
    endpoints: endpointsAt(engine.url),
    bodies: { received_max: "1KB", inflated_max: "2KB" },
  });
  const large = await router.post("/v1/chat/completions", { ...CHAT, pad: "x".repeat(2_000) });
  deepEqual([large.status, (await large.json()).error.code], [413, "body_too_large"]);
  const coded = await router.post("/v1/chat/completions", CHAT, {
    headers: { "content-encoding": "br" },
  });
  deepEqual([coded.status, (await coded.json()).error.code], [415, "encoding_unsupported"]);
  const zeros = new Blob([JSON.stringify({ ...CHAT, pad: " ".repeat(100_000) })]).stream()
    .pipeThrough(new CompressionStream("gzip"));
  const bomb = await fetch(`${router.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-encoding": "gzip" },
    body: await new Response(zeros).arrayBuffer(),
  });
  deepEqual([bomb.status, (await bomb.json()).error.code], [413, "body_inflates_too_large"]);
  const text = await router.post("/v1/chat/completions", "hello");
  deepEqual([text.status, (await text.json()).error.code], [400, "invalid_request"]);
  equal(engine.calls.length, 0);
});

Deno.test("what is not HTTP gets an answer that says so", async () => {
  await using router = await runRouter({ endpoints: endpointsAt("http://127.0.0.1:1") });
  const port = Number(new URL(router.url).port);
  const answers: readonly (readonly [string, RegExp])[] = [
    ["hello\r\n\r\n", /^HTTP\/1\.1 400 .*"code":"bad_http"/s],
    [`GET / HTTP/1.1\r\nx: ${"y".repeat(40_000)}`, /^HTTP\/1\.1 431 .*"code":"bad_http"/s],
    ["GET /health HTTP/1.1\r\n\r\n", /^HTTP\/1\.1 400 .*no Host header.*"code":"bad_http"/s],
    [
      "GET /health HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n",
      /^HTTP\/1\.1 400 .*more than one Host header.*"code":"bad_http"/s,
    ],
    [
      "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nExpect: a-miracle\r\n" +
      "Content-Length: 9\r\n\r\n{}",
      /^HTTP\/1\.1 417 .*100-continue.*"code":"bad_http"/s,
    ],
    [
      "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n" +
      "2\r\n{}\r\n0\r\n\r\n",
      /^HTTP\/1\.1 400 .*not chunked alone.*"code":"bad_http"/s,
    ],
    [
      "POST /v1/chat/completions HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n" +
      "2\r\n{}\r\n0\r\n\r\n",
      /^HTTP\/1\.1 400 .*only HTTP\/1\.1 has.*"code":"bad_http"/s,
    ],
    ["GET /health HTTP/1.0\r\n\r\n", /^HTTP\/1\.1 200 /],
  ];
  for (const [text, expected] of answers) match(await exchange(port, text), expected);
});

Deno.test("keys of a file are wanted on every route but the probes, and read again on reload", async () => {
  const file = await Deno.makeTempFile();
  try {
    await Deno.writeTextFile(file, "# one\nsk-heddle-one # the first\n\n");
    await using engine = await startEngine(HEALTHY);
    await using router = await runRouter({
      endpoints: endpointsAt(engine.url),
      keys: { policy: "key_file", file },
    });
    const status = async (headers: Record<string, string>) => {
      const response = await router.post("/v1/chat/completions", CHAT, { headers });
      await response.body?.cancel();
      return response.status;
    };
    equal(await status({}), 401);
    equal(await status({ authorization: "Bearer sk-heddle-two" }), 401);
    equal(await status({ authorization: "Bearer sk-heddle-one" }), 200);
    equal(await status({ "x-api-key": "sk-heddle-one" }), 200);
    equal(await status({ "x-api-key": "sk-heddle-one", "api-key": "other" }), 400);
    equal(engine.calls[0]?.headers.authorization, undefined);
    for (const [path, want] of [["/v1/models", 401], ["/health", 200], ["/ready", 200]] as const) {
      const response = await fetch(router.url + path);
      await response.body?.cancel();
      equal(response.status, want, path);
    }
    await Deno.writeTextFile(file, "sk-heddle-two\n");
    await router.reload();
    for (let tries = 0; await status({ "api-key": "sk-heddle-two" }) !== 200; tries++) {
      ok(tries < 99);
    }
    equal(await status({ "api-key": "sk-heddle-one" }), 401);
  } finally {
    await Deno.remove(file);
  }
});

Deno.test("a slow client holds back its engine, not the router's memory", async () => {
  const text = "x".repeat(64 * 1024);
  let written = 0;
  await using engine = await startEngine(async (call) => {
    openStream(call);
    while (!call.response.destroyed && written < 512 * 2 ** 20) {
      written += text.length;
      if (!call.response.write(chunk({ content: text }))) {
        await new Promise<void>((resolve) => {
          call.response.once("drain", resolve);
          call.response.once("close", resolve);
        });
      }
    }
  });
  await using router = await runRouter({ endpoints: endpointsAt(engine.url) });
  const leave = new AbortController();
  const response = await router.post("/v1/chat/completions", { ...CHAT, stream: true }, {
    signal: leave.signal,
  });
  equal(response.status, 200);
  // Kernel buffers take a few megabytes on each of the two hops; then nothing moves any more.
  let last = -1;
  while (last !== written) {
    last = written;
    for (let ticks = 0; ticks < 200; ticks++) await router.tick();
  }
  ok(written < 64 * 2 ** 20, `${written} bytes were taken from the engine`);
  leave.abort();
  await response.body?.cancel().catch(() => {});
  await engine.calls[0]?.aborted;
});

Deno.test("a router that stops finishes its streams and takes no more requests", async () => {
  let finish = () => {};
  await using engine = await startEngine((call) => {
    openStream(call);
    call.response.write(chunk({ content: "1" }));
    finish = () => call.response.end(chunk({}, "stop") + DONE_EVENT);
  });
  const router = await runRouter({ endpoints: endpointsAt(engine.url) });
  const response = await router.post("/v1/chat/completions", { ...CHAT, stream: true });
  const stopped = router[Symbol.asyncDispose]();
  equal(router.notReady(), "stopping");
  const refused = await fetch(`${router.url}/health`).then(() => false, () => true);
  ok(refused, "a connection was accepted while stopping");
  finish();
  ok((await response.text()).endsWith(DONE_EVENT));
  await stopped;
});

Deno.test("a client that keeps its connection is served once more while the router stops", async () => {
  await using engine = await startEngine(HEALTHY);
  const router = await runRouter({ endpoints: endpointsAt(engine.url) }, { hotMs: 1_000 });
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const post = () =>
    new Promise<{ status: number; connection: string }>((resolve, reject) => {
      const request = http.request(`${router.url}/v1/chat/completions`, { method: "POST", agent });
      request.on("error", reject).on("response", (response) => {
        response.on("end", () =>
          resolve({
            status: response.statusCode ?? 0,
            connection: response.headers.connection ?? "",
          })).resume();
      });
      request.end(JSON.stringify(CHAT));
    });
  deepEqual(await post(), { status: 200, connection: "keep-alive" });
  await router.tick();
  const stopped = router[Symbol.asyncDispose]();
  deepEqual(await post(), { status: 200, connection: "close" });
  await stopped;
  agent.destroy();
});

Deno.test("a stream that outlives the shutdown timeout is cut, and its engine freed", async () => {
  await using engine = await startEngine((call) => {
    openStream(call);
    call.response.write(chunk({ content: "1" }));
  });
  const router = await runRouter({ endpoints: endpointsAt(engine.url), shutdown_timeout: "50ms" });
  const response = await router.post("/v1/chat/completions", { ...CHAT, stream: true });
  await router[Symbol.asyncDispose]();
  await engine.calls[0]?.aborted;
  await response.text().then(() => ok(false, "looks complete"), () => {});
});

/** Sends raw bytes and returns everything that comes back. */
function exchange(port: number, text: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = net.connect({ host: "127.0.0.1", port });
    let answer = "";
    socket.on("data", (part) => answer += part);
    socket.on("error", () => {});
    socket.on("close", () => resolve(answer));
    socket.write(text);
  });
}
