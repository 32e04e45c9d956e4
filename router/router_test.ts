import { deepEqual, equal, match, ok } from "node:assert/strict";
import { CHAT, endpointsAt, runRouter } from "./testing/running_router.ts";
import {
  CHAT_ANSWER,
  CHAT_STREAM,
  chunk,
  cut,
  DONE_EVENT,
  event,
  HEALTHY,
  openStream,
  sendJson,
  startEngine,
  USAGE_EVENT,
} from "./testing/scripted_engine.ts";

Deno.test("a whole answer comes back as the engine's bytes, with the request rewritten", async () => {
  await using engine = await startEngine(HEALTHY);
  await using router = await runRouter({ endpoints: endpointsAt(engine.url) });
  const response = await router.post(
    "/v1/chat/completions",
    '{"model":"m","messages":[],"seed":9007199254740993,"priority":-5,"x":1.0}',
    { headers: { "x-request-id": "mine-1", "x-secret": "no" } },
  );
  equal(response.status, 200);
  equal(response.headers.get("x-request-id"), "mine-1");
  equal(response.headers.get("x-heddle-replica"), "e0");
  equal(response.headers.get("x-heddle-model"), "m");
  deepEqual(await response.json(), CHAT_ANSWER);
  const [call] = engine.calls;
  equal(call?.path, "/v1/chat/completions");
  equal(call?.body, '{"model":"served","messages":[],"seed":9007199254740993,"x":1.0}');
  equal(call?.headers["x-secret"], undefined);
  equal(call?.headers["x-request-id"], "mine-1");
  const record = await router.record(1);
  equal(record.outcome, "ok");
  deepEqual(record.usage, { promptTokens: 11, completionTokens: 4 });
});

Deno.test("a stream passes event by event, without the usage chunk that was not asked for", async () => {
  await using engine = await startEngine(HEALTHY);
  await using router = await runRouter({ endpoints: endpointsAt(engine.url) });
  const response = await router.post("/v1/chat/completions", { ...CHAT, stream: true });
  equal(response.status, 200);
  match(response.headers.get("content-type") ?? "", /^text\/event-stream/);
  equal(response.headers.get("x-accel-buffering"), "no");
  equal(response.headers.get("x-heddle-replica"), "e0");
  equal(await response.text(), CHAT_STREAM.filter((text) => text !== USAGE_EVENT).join(""));
  equal(JSON.parse(engine.calls[0]?.body ?? "").stream_options.include_usage, true);
  const record = await router.record(1);
  deepEqual([record.outcome, record.estimated, record.usage?.completionTokens], ["ok", false, 4]);
  const asked = await router.post("/v1/chat/completions", {
    ...CHAT,
    stream: true,
    stream_options: { include_usage: true },
  });
  equal(await asked.text(), CHAT_STREAM.join(""));
});

Deno.test("an unknown model is 404, an unknown path too, another method 405", async () => {
  await using router = await runRouter({ endpoints: endpointsAt("http://127.0.0.1:1") });
  const unknown = await router.post("/v1/chat/completions", { ...CHAT, model: "nope" });
  equal(unknown.status, 404);
  const { error } = await unknown.json();
  deepEqual([error.code, error.param], ["model_not_found", "model"]);
  const path = await router.post("/invocations", {});
  deepEqual([path.status, (await path.json()).error.code], [404, "no_route"]);
  const method = await fetch(`${router.url}/v1/chat/completions`);
  deepEqual([method.status, method.headers.get("allow")], [405, "POST"]);
  await method.body?.cancel();
});

Deno.test("models are listed with their aliases, and found by names with slashes", async () => {
  await using router = await runRouter({
    endpoints: [{ name: "e", url: "http://127.0.0.1:1/v1", models: [{ name: "org/m:x" }] }],
    models: [{ name: "org/m:x", aliases: ["nick"] }],
  });
  const list = await (await fetch(`${router.url}/v1/models`)).json();
  deepEqual(list.data.map(({ id }: { id: string }) => id), ["nick", "org/m:x"]);
  for (const tail of ["org%2Fm:x", "org/m:x", "nick"]) {
    const one = await fetch(`${router.url}/v1/models/${tail}`);
    equal(one.status, 200, tail);
    equal((await one.json()).object, "model");
  }
  const missing = await fetch(`${router.url}/v1/models/org%252Fm:x`);
  deepEqual([missing.status, (await missing.json()).error.code], [404, "model_not_found"]);
});

Deno.test("names in any script work, in the body, in headers and on the wire", async () => {
  await using engine = await startEngine(HEALTHY);
  await using router = await runRouter({
    endpoints: [{
      name: "e",
      url: engine.url,
      models: [{ name: "模型 1", served_name: "модель" }],
    }],
  });
  const response = await router.post("/v1/chat/completions", { ...CHAT, model: "模型 1" });
  equal(response.status, 200);
  equal(response.headers.get("x-heddle-model"), encodeURIComponent("模型 1"));
  await response.body?.cancel();
  equal(JSON.parse(engine.calls[0]?.body ?? "").model, "модель");
  const card = await fetch(`${router.url}/v1/models/${encodeURIComponent("模型 1")}`);
  equal((await card.json()).id, "模型 1");
});

Deno.test("embeddings come in the encoding that was asked for", async () => {
  await using engine = await startEngine((call) =>
    sendJson(call, 200, {
      object: "list",
      data: [{ object: "embedding", index: 0, embedding: [0.5, -0.25, 1] }],
      usage: { prompt_tokens: 3, total_tokens: 3 },
    })
  );
  await using router = await runRouter({ endpoints: endpointsAt(engine.url) });
  for (const [asked, want] of [["base64", "AAAAPwAAgL4AAIA/"], ["float", [0.5, -0.25, 1]]]) {
    const response = await router.post("/v1/embeddings", {
      model: "m",
      input: "x",
      encoding_format: asked,
    });
    deepEqual((await response.json()).data[0].embedding, want);
  }
  deepEqual((await router.record(1)).usage, { promptTokens: 3, completionTokens: 0 });
});

Deno.test("what fails before any content is answered by another replica", async (test) => {
  const failures = {
    "cut before the head": cut,
    "500": (call: Parameters<typeof cut>[0]) => sendJson(call, 500, { error: { message: "boom" } }),
    "503": (call: Parameters<typeof cut>[0]) => sendJson(call, 503, { error: { message: "full" } }),
    "garbage": (call: Parameters<typeof cut>[0]) => {
      call.response.writeHead(200, { "content-type": "application/json" });
      call.response.end("<html>");
    },
    "an error as first event": (call: Parameters<typeof cut>[0]) => {
      openStream(call);
      call.response.end(event({ error: { message: "queue is full", code: 503 } }) + DONE_EVENT);
    },
    "only [DONE]": (call: Parameters<typeof cut>[0]) => {
      openStream(call);
      call.response.end(DONE_EVENT);
    },
    "cut after the role": (call: Parameters<typeof cut>[0]) => {
      openStream(call);
      call.response.write(chunk({ role: "assistant", content: "" }), () => cut(call));
    },
  };
  for (const [name, fail] of Object.entries(failures)) {
    for (const stream of [false, true]) {
      await test.step(`${name}, ${stream ? "streamed" : "whole"}`, async () => {
        await using bad = await startEngine(fail);
        await using good = await startEngine(HEALTHY);
        const [first, second] = endpointsAt(bad.url, good.url);
        await using router = await runRouter({ endpoints: [{ ...first, priority: 1 }, second] });
        const response = await router.post("/v1/chat/completions", { ...CHAT, stream });
        equal(response.status, 200);
        equal(response.headers.get("x-heddle-replica"), "e1");
        const text = await response.text();
        ok(text.includes("3"));
        equal(text.split('"role":"assistant"').length, 2);
        const record = await router.record(1);
        deepEqual([record.outcome, record.tries, router.records.length], ["ok", 2, 1]);
        deepEqual([bad.calls.length, good.calls.length], [1, 1]);
      });
    }
  }
});

Deno.test("an engine that is not there is taken out at once", async () => {
  await using good = await startEngine(HEALTHY);
  const gone = await startEngine(HEALTHY);
  await gone[Symbol.asyncDispose]();
  const [first, second] = endpointsAt(gone.url, good.url);
  await using router = await runRouter({ endpoints: [{ ...first, priority: 1 }, second] });
  for (const tries of [2, 1]) {
    const response = await router.post("/v1/chat/completions", CHAT);
    equal(response.status, 200);
    await response.body?.cancel();
    equal((await router.record(router.records.length)).tries, tries);
  }
  equal(
    await router.metric('heddle_router_breaker_state{replica="e0",state="open"}'),
    1,
  );
});

Deno.test("after content a failure is one error event and a broken close, without [DONE]", async (test) => {
  const endings: Record<string, (call: Parameters<typeof cut>[0]) => void> = {
    reset: cut,
    "clean end without finish": (call) => call.response.end(),
    "[DONE] without finish": (call) => call.response.end(DONE_EVENT),
    "error event": (call) =>
      call.response.end(event({ error: { message: "engine stopped", code: 500 } }) + DONE_EVENT),
    "cut inside an event": (call) => {
      call.response.write('data: {"choices":[{"index":0,"delta":{"content":"LOST', () => cut(call));
    },
    garbage: (call) => call.response.end("data: <html>\n\n"),
  };
  for (const [name, finish] of Object.entries(endings)) {
    await test.step(name, async () => {
      await using bad = await startEngine((call) => {
        openStream(call);
        call.response.write(
          chunk({ role: "assistant", content: "" }) + chunk({ content: "1" }),
          () => finish(call),
        );
      });
      await using good = await startEngine(HEALTHY);
      const [first, second] = endpointsAt(bad.url, good.url);
      await using router = await runRouter({ endpoints: [{ ...first, priority: 1 }, second] });
      const response = await router.post("/v1/chat/completions", { ...CHAT, stream: true });
      equal(response.status, 200);
      const { text, broken } = await readBroken(response);
      ok(broken, "the close must not look clean");
      ok(text.includes('"content":"1"'));
      equal(text.match(/^data: ?\{"error":/gm)?.length, 1);
      ok(!text.includes("[DONE]") && !text.includes("LOST"));
      const record = await router.record(1);
      equal(record.outcome, "stream_broken");
      equal(record.usage?.completionTokens, 1);
      equal(good.calls.length, 0);
    });
  }
});

Deno.test("a finish reason without [DONE] is a whole answer, and gets its [DONE]", async () => {
  await using engine = await startEngine((call) => {
    openStream(call);
    call.response.end(CHAT_STREAM.filter((text) => text !== DONE_EVENT).join(""));
  });
  await using router = await runRouter({ endpoints: endpointsAt(engine.url) });
  const response = await router.post("/v1/chat/completions", { ...CHAT, stream: true });
  ok((await response.text()).endsWith(DONE_EVENT));
  equal((await router.record(1)).outcome, "ok");
});

Deno.test("a refusal of the request itself is passed on and not retried", async () => {
  await using bad = await startEngine((call) =>
    sendJson(call, 400, {
      object: "error",
      message: "too long",
      type: "BadRequestError",
      code: 400,
    })
  );
  await using other = await startEngine(HEALTHY);
  const [first, second] = endpointsAt(bad.url, other.url);
  await using router = await runRouter({ endpoints: [{ ...first, priority: 1 }, second] });
  const response = await router.post("/v1/chat/completions", CHAT);
  equal(response.status, 400);
  equal((await response.json()).error.message, "too long");
  equal(other.calls.length, 0);
  equal((await router.record(1)).outcome, "engine_refused");
});

Deno.test("a client that leaves frees the engine and every counter", async (test) => {
  const moments: Record<string, (call: Parameters<typeof cut>[0]) => void> = {
    "before the head": () => {},
    "before the first content": (call) => {
      openStream(call);
      call.response.write(chunk({ role: "assistant", content: "" }));
    },
    "in the middle": (call) => {
      openStream(call);
      call.response.write(chunk({ role: "assistant", content: "" }) + chunk({ content: "1" }));
    },
  };
  for (const [name, begin] of Object.entries(moments)) {
    for (const stream of name === "before the head" ? [false, true] : [true]) {
      await test.step(`${name}, ${stream ? "streamed" : "whole"}`, async () => {
        await using engine = await startEngine(begin);
        await using router = await runRouter({ endpoints: endpointsAt(engine.url) });
        const leave = new AbortController();
        const pending = router.post("/v1/chat/completions", { ...CHAT, stream }, {
          signal: leave.signal,
        }).then(async (response) => {
          const reader = response.body?.getReader();
          await reader?.read();
          leave.abort();
          await reader?.read();
        });
        await engine.called(1);
        equal(await router.metric('heddle_router_replica_in_flight{replica="e0"}'), 1);
        if (name !== "in the middle") leave.abort();
        await pending.catch(() => {});
        await engine.calls[0]?.aborted;
        const record = await router.record(1);
        equal(record.outcome, "client_closed");
        equal(await router.metric('heddle_router_replica_in_flight{replica="e0"}'), 0);
        equal(await router.metric("heddle_router_requests_in_flight"), 0);
        equal(await router.metric('heddle_router_engine_connections{state="busy"}'), 0);
      });
    }
  }
});

/** Reads a body that breaks off, with what came until then. */
async function readBroken(response: Response): Promise<{ text: string; broken: boolean }> {
  const decoder = new TextDecoder();
  let text = "";
  try {
    for await (const part of response.body ?? []) text += decoder.decode(part, { stream: true });
    return { text, broken: false };
  } catch {
    return { text, broken: true };
  }
}
