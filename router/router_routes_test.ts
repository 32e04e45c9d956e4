/** Routes beside chat: what reaches the engine, and how answers and errors look to their clients. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { endpointsAt, runRouter } from "./testing/running_router.ts";
import {
  asksForStream,
  cut,
  type EngineCall,
  HEALTHY,
  openStream,
  sendJson,
  startEngine,
} from "./testing/scripted_engine.ts";

const MESSAGE = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  content: [{ type: "text", text: "1 2 3" }],
  stop_reason: "end_turn",
  usage: { input_tokens: 11, output_tokens: 4 },
};

const MESSAGE_EVENTS = [
  {
    type: "message_start",
    message: {
      ...MESSAGE,
      content: [],
      stop_reason: null,
      usage: { input_tokens: 11, output_tokens: 1 },
    },
  },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "1 2 3" } },
  { type: "content_block_stop", index: 0 },
  { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 4 } },
  { type: "message_stop" },
];

const RESPONSE = { id: "resp_1", object: "response", created_at: 7, model: "served", output: [] };

const RESPONSE_EVENTS = [
  { type: "response.created", sequence_number: 0, response: RESPONSE },
  { type: "response.output_text.delta", sequence_number: 1, delta: "1 2 3" },
  {
    type: "response.completed",
    sequence_number: 2,
    response: {
      ...RESPONSE,
      status: "completed",
      usage: { input_tokens: 11, output_tokens: 4, total_tokens: 15 },
    },
  },
];

function typed(events: readonly { readonly type: string }[]): string {
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
}

/** Answers with `events` and the end that a test wants. */
function streaming(events: readonly { readonly type: string }[], last = "") {
  return (call: EngineCall) => {
    openStream(call);
    call.response.end(typed(events) + last);
  };
}

/** Answers with `events`, and breaks off. */
function breaking(events: readonly { readonly type: string }[]) {
  return (call: EngineCall) => {
    openStream(call);
    call.response.write(typed(events), () => cut(call));
  };
}

/** What a client reads of a stream that may break off. */
async function textOf(response: Response): Promise<string> {
  let text = "";
  try {
    const decoder = new TextDecoder();
    for await (const part of response.body ?? []) text += decoder.decode(part, { stream: true });
  } catch {
    text += "\n(broken off)";
  }
  return text;
}

const ASK = { model: "m", max_tokens: 16, messages: [{ role: "user", content: "count" }] };

Deno.test("rerank, score and tokenize reach the engine under their own paths", async () => {
  await using engine = await startEngine((call) =>
    sendJson(call, 200, { results: [], usage: { prompt_tokens: 6, total_tokens: 6 } })
  );
  await using router = await runRouter({ endpoints: endpointsAt(engine.url) });
  const paths = ["/v1/rerank", "/v2/rerank", "/rerank", "/v1/score", "/score", "/detokenize"];
  for (const path of paths) {
    const response = await router.post(path, { model: "m", query: "q", documents: ["a"] });
    equal(response.status, 200, path);
    await response.body?.cancel();
  }
  deepEqual(engine.calls.map(({ path }) => path), paths);
  equal(JSON.parse(engine.calls[0]?.body ?? "").model, "served");
  const [first] = router.records;
  deepEqual([first?.route, first?.usage], ["rerank", { promptTokens: 6, completionTokens: 0 }]);
  equal(router.records.at(-1)?.usage, undefined, "detokenize is not metered");
});

Deno.test("a path that a model does not serve is the caller's fault and harms nobody", async () => {
  await using engine = await startEngine((call) =>
    call.path === "/v1/rerank" ? sendJson(call, 404, { detail: "Not Found" }) : HEALTHY(call, 0)
  );
  await using router = await runRouter({ endpoints: endpointsAt(engine.url) });
  for (let n = 0; n < 5; n++) {
    const response = await router.post("/v1/rerank", { model: "m", query: "q", documents: [] });
    deepEqual([response.status, (await response.json()).error.code], [400, "route_unsupported"]);
  }
  equal(await router.metric('heddle_router_breaker_state{replica="e0",state="closed"}'), 1);
  const chat = await router.post("/v1/chat/completions", ASK);
  equal(chat.status, 200);
  await chat.body?.cancel();
});

Deno.test("messages go with their beta headers and query, and are metered", async () => {
  await using engine = await startEngine((call) =>
    asksForStream(call) ? streaming(MESSAGE_EVENTS)(call) : sendJson(call, 200, MESSAGE)
  );
  await using router = await runRouter({ endpoints: endpointsAt(engine.url) });
  const headers = {
    "x-api-key": "ignored",
    "anthropic-version": "2023-06-01",
    "anthropic-beta": "b-1,b-2",
    "x-secret": "no",
  };
  const whole = await router.post("/v1/messages?beta=true&x=1", ASK, { headers });
  equal(whole.headers.get("request-id"), whole.headers.get("x-request-id"));
  deepEqual(await whole.json(), MESSAGE);
  const [call] = engine.calls;
  equal(call?.path, "/v1/messages?beta=true");
  equal(call?.headers["anthropic-beta"], "b-1,b-2");
  equal(call?.headers["anthropic-version"], "2023-06-01");
  deepEqual([call?.headers["x-secret"], call?.headers["x-api-key"]], [undefined, undefined]);
  const stream = await router.post("/v1/messages", { ...ASK, stream: true });
  equal(await stream.text(), typed(MESSAGE_EVENTS));
  equal(JSON.parse(engine.calls[1]?.body ?? "").stream_options, undefined);
  await router.record(2);
  for (const { usage, outcome } of router.records) {
    deepEqual([outcome, usage], ["ok", { promptTokens: 11, completionTokens: 4 }]);
  }
});

Deno.test("a Messages stream ends in message_stop, whatever the engine says instead", async () => {
  await using engine = await startEngine(() => {});
  await using router = await runRouter({ endpoints: endpointsAt(engine.url) });
  const cut = MESSAGE_EVENTS.slice(0, -1);
  for (
    const script of [
      streaming(cut),
      streaming(cut, "data: [DONE]\n\n"),
      streaming(MESSAGE_EVENTS, "data: [DONE]\n\n"),
    ]
  ) {
    engine.script(script);
    const response = await router.post("/v1/messages", { ...ASK, stream: true });
    equal(await response.text(), typed(MESSAGE_EVENTS));
  }
});

Deno.test("errors of the Messages API come in its own envelope", async () => {
  await using engine = await startEngine((call) =>
    sendJson(call, 400, { error: { message: "bad role", type: "BadRequestError", code: 400 } })
  );
  await using router = await runRouter({ endpoints: endpointsAt(engine.url) });
  const envelope = (type: string, message: string) => ({ type: "error", error: { type, message } });
  const refused = await router.post("/v1/messages", ASK);
  deepEqual([refused.status, await refused.json()], [
    400,
    envelope("invalid_request_error", "bad role"),
  ]);
  const unknown = await router.post("/v1/messages", { ...ASK, model: "nope" });
  deepEqual([unknown.status, await unknown.json()], [
    404,
    envelope("not_found_error", 'The model "nope" does not exist'),
  ]);
  const path = await fetch(`${router.url}/v1/messages/batches`);
  deepEqual([path.status, (await path.json()).error.type], [404, "not_found_error"]);
  engine.script(breaking(MESSAGE_EVENTS.slice(0, 3)));
  const broken = await textOf(await router.post("/v1/messages", { ...ASK, stream: true }));
  match(broken, /event: error\ndata: \{"type":"error","error":\{"type":"api_error"/);
  match(broken, /\(broken off\)$/);
});

Deno.test("count_tokens takes no tokens", async () => {
  await using engine = await startEngine((call) => sendJson(call, 200, { input_tokens: 11 }));
  await using router = await runRouter({ endpoints: endpointsAt(engine.url) });
  const response = await router.post("/v1/messages/count_tokens?beta=true", ASK);
  deepEqual(await response.json(), { input_tokens: 11 });
  equal(engine.calls[0]?.path, "/v1/messages/count_tokens?beta=true");
  const record = await router.record(1);
  deepEqual([record.route, record.outcome, record.usage], ["count_tokens", "ok", undefined]);
});

Deno.test("a Responses stream ends at its last event, and is not stored", async () => {
  await using engine = await startEngine(
    streaming(RESPONSE_EVENTS, "data: [DONE]\n\n"),
  );
  await using router = await runRouter({ endpoints: endpointsAt(engine.url) });
  const response = await router.post("/v1/responses", {
    model: "m",
    input: "count",
    stream: true,
    store: true,
  });
  equal(response.headers.get("x-heddle-store"), "false");
  equal(await response.text(), typed(RESPONSE_EVENTS));
  deepEqual(JSON.parse(engine.calls[0]?.body ?? ""), {
    model: "served",
    input: "count",
    stream: true,
    store: false,
  });
  const record = await router.record(1);
  deepEqual([record.outcome, record.usage], ["ok", { promptTokens: 11, completionTokens: 4 }]);
});

Deno.test("a Responses stream that breaks off gets the last event that clients wait for", async () => {
  await using engine = await startEngine(breaking(RESPONSE_EVENTS.slice(0, 2)));
  await using router = await runRouter({ endpoints: endpointsAt(engine.url) });
  const text = await textOf(
    await router.post("/v1/responses", { model: "m", input: "count", stream: true }),
  );
  ok(text.startsWith(typed(RESPONSE_EVENTS.slice(0, 2))), text);
  const failed = JSON.parse(/event: response\.failed\ndata: (.*)/.exec(text)?.[1] ?? "null");
  deepEqual([failed.type, failed.sequence_number], ["response.failed", 2]);
  deepEqual(
    [failed.response.id, failed.response.status, failed.response.created_at],
    ["resp_1", "failed", 7],
  );
  match(failed.response.error.message, /broke off/);
  equal((await router.record(1)).outcome, "stream_broken");
});

Deno.test("a Responses stream that the engine calls off has one end, of those that clients know", async () => {
  const cancelled = {
    type: "response.cancelled",
    sequence_number: 2,
    response: { ...RESPONSE, status: "cancelled" },
  };
  await using engine = await startEngine(streaming([...RESPONSE_EVENTS.slice(0, 2), cancelled]));
  await using router = await runRouter({ endpoints: endpointsAt(engine.url) });
  const text = await textOf(
    await router.post("/v1/responses", { model: "m", input: "count", stream: true }),
  );
  const ends = [...text.matchAll(/^event: response\.(completed|incomplete|failed|cancelled)$/gm)];
  deepEqual(ends.map(([, end]) => end), ["failed"], text);
  equal((await router.record(1)).outcome, "stream_broken");
});

Deno.test("a Responses request that fails before it began is answered by another replica", async () => {
  await using bad = await startEngine(breaking(RESPONSE_EVENTS.slice(0, 1)));
  await using good = await startEngine(streaming(RESPONSE_EVENTS));
  await using router = await runRouter({ endpoints: endpointsAt(bad.url, good.url) });
  for (let n = 1; n <= 4; n++) {
    const response = await router.post("/v1/responses", { model: "m", input: "x", stream: true });
    equal(await response.text(), typed(RESPONSE_EVENTS));
  }
});

Deno.test("a Responses request that needs what nobody keeps is refused", async () => {
  await using router = await runRouter({ endpoints: endpointsAt("http://127.0.0.1:1") });
  const ask = async (more: Record<string, unknown>) => {
    const response = await router.post("/v1/responses", { model: "m", input: "x", ...more });
    const { error } = await response.json();
    return [response.status, error.code, error.param];
  };
  deepEqual(await ask({ previous_response_id: "resp_1" }), [
    404,
    "previous_response_not_found",
    "previous_response_id",
  ]);
  deepEqual(await ask({ background: true }), [400, "invalid_request", "background"]);
  deepEqual(await ask({ conversation: "c" }), [400, "invalid_request", "conversation"]);
});

Deno.test("control fields are dropped and named, or refused", async () => {
  await using engine = await startEngine(HEALTHY);
  const config = { endpoints: endpointsAt(engine.url) };
  await using strict = await runRouter({ ...config, requests: { control_fields: "refuse" } });
  const body = { ...ASK, priority: -9, rid: "x" };
  const refused = await strict.post("/v1/chat/completions", body);
  deepEqual([refused.status, (await refused.json()).error.param], [400, "priority"]);
  await using router = await runRouter(config);
  const served = await router.post("/v1/chat/completions", body);
  equal(served.headers.get("x-heddle-dropped"), "priority, rid");
  await served.body?.cancel();
  deepEqual(JSON.parse(engine.calls[0]?.body ?? ""), { ...ASK, model: "served" });
});

Deno.test("pages of a listed origin may call, others are told nothing", async () => {
  await using engine = await startEngine(HEALTHY);
  await using router = await runRouter({
    endpoints: endpointsAt(engine.url),
    cors: { origins: ["https://app.example"] },
  });
  const ask = (origin: string, method: string, path = "/v1/chat/completions") =>
    fetch(router.url + path, {
      method,
      headers: {
        origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,x-stainless-os",
      },
    });
  const allowed = await ask("https://app.example", "OPTIONS");
  equal(allowed.status, 204);
  equal(allowed.headers.get("access-control-allow-origin"), "https://app.example");
  equal(allowed.headers.get("access-control-allow-headers"), "authorization, x-stainless-os");
  equal(allowed.headers.get("vary"), "origin");
  const other = await ask("https://other.example", "OPTIONS");
  deepEqual([other.status, other.headers.get("access-control-allow-origin")], [405, null]);
  const unknown = await ask("https://app.example", "OPTIONS", "/metrics");
  equal(unknown.status, 404);
  const chat = await router.post("/v1/chat/completions", ASK, {
    headers: { origin: "https://app.example" },
  });
  equal(chat.headers.get("access-control-allow-origin"), "https://app.example");
  match(chat.headers.get("access-control-expose-headers") ?? "", /x-request-id/);
  for (const response of [allowed, other, unknown, chat]) await response.body?.cancel();
  equal(engine.calls.length, 1);
});

Deno.test("media that a request names by URL are fetched from listed hosts only", async () => {
  await using engine = await startEngine(HEALTHY);
  const ask = async (config: Record<string, unknown>, url: string) => {
    await using router = await runRouter({ endpoints: endpointsAt(engine.url), ...config });
    const content = [{ type: "image_url", image_url: { url } }];
    const response = await router.post("/v1/chat/completions", {
      model: "m",
      messages: [{ role: "user", content }],
    });
    await response.body?.cancel();
    return response.status;
  };
  const hosts = { requests: { media_urls: { fetch: "hosts", hosts: ["img.example"] } } };
  equal(await ask({}, "https://img.example/a.png"), 400);
  equal(await ask({}, "data:image/png;base64,AAAA"), 200);
  equal(await ask(hosts, "https://img.example/a.png"), 200);
  equal(await ask(hosts, "http://169.254.169.254/latest"), 400);
});
