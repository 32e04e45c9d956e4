/** The simulated engine over HTTP: what clients, routers and scrapers rely on. */
import assert from "node:assert/strict";
import { chatCase, dataOf, type SimulationCase, startSimulation } from "./simulation_case.ts";

const CHAT = "/v1/chat/completions";

async function events(engine: SimulationCase, body: object): Promise<string[]> {
  return dataOf(await (await engine.post(CHAT, body)).text());
}

Deno.test("a stream starts with the role, ends with finish_reason, usage and [DONE]", async () => {
  await using engine = await startSimulation();
  const stream_options = { include_usage: true, continuous_usage_stats: true };
  const data = await events(engine, chatCase({ stream: true, max_tokens: 3, stream_options }));
  assert.equal(data.at(-1), "[DONE]");
  const chunks = data.slice(0, -1).map((text) => JSON.parse(text));
  assert.deepEqual(chunks[0].choices[0].delta, { role: "assistant", content: "" });
  assert.deepEqual(
    chunks.map((chunk) => chunk.choices[0]?.finish_reason),
    [null, null, null, "length", undefined],
  );
  assert.deepEqual(chunks.at(-1).choices, []);
  assert.deepEqual(chunks.map(({ usage }) => usage.completion_tokens), [1, 1, 2, 3, 3]);
  assert.equal(new Set(chunks.map(({ id }) => id)).size, 1);
});

Deno.test("usage, /tokenize and the metrics count the same tokens", async () => {
  await using engine = await startSimulation("--enable-prompt-tokens-details");
  const messages = [{ role: "user", content: "count ".repeat(100) }];
  const { usage } = await (await engine.post(CHAT, chatCase({ messages, max_tokens: 9 }))).json();
  const counted = await (await engine.post("/tokenize", { messages })).json();
  assert.equal(usage.prompt_tokens, counted.count);
  assert.equal(counted.tokens.length, counted.count);
  const back = await (await engine.post("/detokenize", { tokens: counted.tokens })).json();
  assert.match(back.prompt, /^<\|im_start\|>user\ncount count/);
  assert.equal(await engine.metric("vllm:prompt_tokens_total"), usage.prompt_tokens);
  assert.equal(await engine.metric("vllm:generation_tokens_total"), usage.completion_tokens);
  assert.equal(usage.prompt_tokens_details.cached_tokens, 0);

  const again = await (await engine.post(CHAT, chatCase({ messages, max_tokens: 9 }))).json();
  const cached = again.usage.prompt_tokens_details.cached_tokens;
  assert.equal(cached, Math.floor((usage.prompt_tokens - 1) / 16) * 16);
  assert.equal(await engine.metric("vllm:prefix_cache_hits_total"), cached);
});

Deno.test("a client that leaves frees its place at once, and counts as aborted", async () => {
  await using engine = await startSimulation("--sim-decode-tokens-per-s", "20");
  const controller = new AbortController();
  const response = await fetch(engine.url + CHAT, {
    method: "POST",
    signal: controller.signal,
    body: JSON.stringify(chatCase({ stream: true, max_tokens: 4_000, ignore_eos: true })),
  });
  const reader = response.body?.getReader();
  await reader?.read();
  assert.equal(await engine.metric("vllm:num_requests_running"), 1);
  controller.abort();
  await reader?.closed.catch(() => {});
  await engine.metricWill("vllm:num_requests_running", (value) => value === 0);
  const aborted =
    'vllm:request_success_total{model_name="tiny",engine="0",finished_reason="abort"}';
  assert.equal(await engine.metric(aborted), 1);
  assert.equal((await (await engine.get("/load")).json()).server_load, 0);
});

Deno.test("a client that leaves before its first token frees its place too", async () => {
  await using engine = await startSimulation("--sim-prefill-tokens-per-s", "1");
  const controller = new AbortController();
  const asked = fetch(engine.url + CHAT, {
    method: "POST",
    signal: controller.signal,
    body: JSON.stringify(chatCase()),
  });
  await engine.metricWill("vllm:num_requests_running", (value) => value === 1);
  controller.abort();
  await assert.rejects(asked);
  await engine.metricWill("vllm:num_requests_running", (value) => value === 0);
  assert.equal(await engine.metric("vllm:kv_cache_usage_perc"), 0);
});

Deno.test("an API key guards /v1 and nothing else", async () => {
  await using engine = await startSimulation("--api-key", "k1", "k2");
  const refused = await engine.post(CHAT, chatCase());
  assert.equal(refused.status, 401);
  assert.deepEqual(await refused.json(), { error: "Unauthorized" });
  const status = async (path: string, key: string) => {
    const response = await engine.get(path, { authorization: `Bearer ${key}` });
    await response.body?.cancel();
    return response.status;
  };
  assert.equal(await status("/v1/models", "k2"), 200);
  assert.equal(await status("/v1/models", "k3"), 401);
  for (const path of ["/health", "/metrics", "/version", "/load"]) {
    assert.equal(await status(path, ""), 200, path);
  }
});

const REFUSED: readonly (readonly [name: string, body: unknown, status: number, param: unknown])[] =
  [
    ["no JSON", "{", 400, null],
    ["an array", [], 400, null],
    ["no messages", { model: "tiny" }, 400, "messages"],
    ["empty messages", chatCase({ messages: [] }), 400, "messages"],
    [
      "a number as content",
      chatCase({ messages: [{ role: "user", content: 1 }] }),
      400,
      "messages",
    ],
    ["a negative temperature", chatCase({ temperature: -1 }), 400, "temperature"],
    ["max_tokens of 0", chatCase({ max_tokens: 0 }), 400, "max_tokens"],
    ["n of 0", chatCase({ n: 0 }), 400, "n"],
    ["a huge n", chatCase({ n: 100_000 }), 400, "n"],
    ["stream options without a stream", chatCase({ stream_options: {} }), 400, "stream_options"],
    ["a tool choice without tools", chatCase({ tool_choice: "required" }), 400, "tool_choice"],
    ["a priority", chatCase({ priority: 1 }), 400, "priority"],
    ["top_logprobs alone", chatCase({ top_logprobs: 2 }), 400, "top_logprobs"],
    ["an unknown model", chatCase({ model: "gpt" }), 404, "model"],
    [
      "an image",
      chatCase({
        messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "x" } }] }],
      }),
      400,
      "messages",
    ],
  ];
Deno.test("bad requests are refused in vLLM's shape", async (t) => {
  await using engine = await startSimulation();
  for (const [name, body, status, param] of REFUSED) {
    await t.step(name, async () => {
      const response = await engine.post(CHAT, body);
      const { error } = await response.json();
      assert.equal(response.status, status);
      assert.equal(error.code, status);
      assert.equal(error.param, param);
      assert.equal(error.type, status === 404 ? "NotFoundError" : "BadRequestError");
      assert.ok(error.message.length > 0);
    });
  }
});

Deno.test("unknown paths are 404 and wrong methods 405", async () => {
  await using engine = await startSimulation();
  const unknown = await engine.get("/v1/nothing");
  assert.equal(unknown.status, 404);
  assert.equal((await unknown.json()).error.type, "NotFoundError");
  const wrong = await engine.get(CHAT);
  assert.equal(wrong.status, 405);
  await wrong.body?.cancel();
});

Deno.test("a stop string ends the answer and never shows", async () => {
  await using engine = await startSimulation();
  const data = await events(engine, chatCase({ stream: true, stop: ["ulated eng", "nothing"] }));
  const chunks = data.slice(0, -1).map((text) => JSON.parse(text));
  const text = chunks.map((chunk) => chunk.choices[0].delta.content).join("");
  assert.equal(text, "This is a sim");
  assert.equal(chunks.at(-1).choices[0].finish_reason, "stop");
  assert.equal(chunks.at(-1).choices[0].stop_reason, "ulated eng");
});

Deno.test("log probabilities come with every token, in chat and in completions", async () => {
  await using engine = await startSimulation();
  const chat = await (await engine.post(
    CHAT,
    chatCase({ logprobs: true, top_logprobs: 3, max_tokens: 5 }),
  )).json();
  const { content } = chat.choices[0].logprobs;
  assert.equal(content.length, 5);
  assert.equal(
    content.map((one: { token: string }) => one.token).join(""),
    chat.choices[0].message.content,
  );
  assert.equal(content[0].top_logprobs.length, 3);
  assert.equal(content[0].top_logprobs[0].token, content[0].token);
  const text = await (await engine.post("/v1/completions", {
    model: "tiny",
    prompt: [1, 2, 3],
    logprobs: 2,
  })).json();
  assert.equal(text.choices[0].logprobs.tokens.length, 16);
  assert.equal(text.usage.prompt_tokens, 3);
});

Deno.test("a JSON schema is answered with JSON that fits it", async () => {
  await using engine = await startSimulation();
  const schema = { type: "object", properties: { count: { type: "integer" } } };
  const response_format = { type: "json_schema", json_schema: { name: "x", schema } };
  const body = await (await engine.post(CHAT, chatCase({ response_format }))).json();
  assert.equal(typeof JSON.parse(body.choices[0].message.content).count, "number");
});

Deno.test("two engines with one seed say the same; another seed says something else", async () => {
  await using one = await startSimulation("--seed", "7");
  await using same = await startSimulation("--seed", "7", "--sim-decode-tokens-per-s", "9000");
  await using other = await startSimulation("--seed", "8");
  const [a, b, c] = await Promise.all([one, same, other].map(async (engine) => {
    const body = await (await engine.post(CHAT, chatCase({ max_tokens: 60 }))).json();
    return body.choices[0].message.content;
  }));
  assert.equal(a, b);
  assert.notEqual(a, c);
});

Deno.test("the request's id is the client's, and two at once may share it", async () => {
  await using engine = await startSimulation("--enable-request-id-headers");
  const headers = { "x-request-id": "abc" };
  const both = await Promise.all([1, 2].map(() => engine.post(CHAT, chatCase(), headers)));
  for (const response of both) {
    assert.equal(response.headers.get("x-request-id"), "abc");
    assert.equal((await response.json()).id, "chatcmpl-abc");
  }
});

Deno.test("the metrics have vLLM's names from the first scrape", async () => {
  await using engine = await startSimulation();
  const text = await (await engine.get("/metrics")).text();
  for (
    const line of [
      "# TYPE vllm:num_requests_running gauge",
      'vllm:num_requests_waiting{model_name="tiny",engine="0"} 0.0',
      'vllm:kv_cache_usage_perc{model_name="tiny",engine="0"} 0.0',
      'vllm:request_success_total{model_name="tiny",engine="0",finished_reason="stop"} 0.0',
      "# TYPE vllm:time_to_first_token_seconds histogram",
      'num_gpu_blocks="8192"} 1.0',
    ]
  ) {
    assert.ok(text.includes(line), line);
  }
  await (await engine.post(CHAT, chatCase({ max_tokens: 5 }))).body?.cancel();
  assert.equal(await engine.metric("vllm:time_to_first_token_seconds_count"), 1);
  assert.equal(await engine.metric("vllm:inter_token_latency_seconds_count"), 4);
});
