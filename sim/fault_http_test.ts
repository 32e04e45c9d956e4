/** Every fault as a client, a router or an agent meets it. */
import assert from "node:assert/strict";
import { chatCase, dataOf, type SimulationCase, startSimulation } from "./simulation_case.ts";

const CHAT = "/v1/chat/completions";
const STREAM = chatCase({ stream: true, max_tokens: 20 });

async function streamed(engine: SimulationCase, body = STREAM): Promise<string[]> {
  return dataOf(await (await engine.post(CHAT, body)).text());
}

function contents(data: readonly string[]): number {
  return data.filter((text) => text.includes('"content":"') && !text.includes('"role"')).length;
}

async function status(engine: SimulationCase, path: string): Promise<number> {
  const response = await engine.get(path);
  await response.body?.cancel();
  return response.status;
}

Deno.test("error_first: 200, then an error as the first event", async () => {
  await using engine = await startSimulation("--sim-fault", "error_first");
  const response = await engine.post(CHAT, STREAM);
  assert.equal(response.status, 200);
  const data = dataOf(await response.text());
  assert.equal(JSON.parse(data[0] ?? "").error.code, 500);
  assert.deepEqual(data.slice(1), ["[DONE]"]);
  const whole = await engine.post(CHAT, chatCase());
  assert.equal(whole.status, 500);
  assert.equal((await whole.json()).error.type, "InternalServerError");
});

Deno.test("error_after: content, then one error and [DONE], and never a finish_reason", async () => {
  await using engine = await startSimulation("--sim-fault", "error_after:after_tokens=4");
  const data = await streamed(engine);
  assert.equal(contents(data), 4);
  assert.ok(JSON.parse(data.at(-2) ?? "").error);
  assert.equal(data.at(-1), "[DONE]");
  const error = 'vllm:request_success_total{model_name="tiny",engine="0",finished_reason="error"}';
  assert.equal(await engine.metric(error), 1);
});

Deno.test("end_early: a clean end that nothing says is early", async () => {
  await using engine = await startSimulation("--sim-fault", "end_early:after_tokens=2,done=false");
  const data = await streamed(engine);
  assert.equal(contents(data), 2);
  assert.ok(!data.includes("[DONE]"));
  assert.ok(!data.join().includes('"finish_reason":"'));
});

Deno.test("cut_stream: the connection is reset after so many tokens, every n-th request", async () => {
  await using engine = await startSimulation("--sim-fault", "cut_stream:after_tokens=3,every=2");
  assert.equal((await streamed(engine)).at(-1), "[DONE]");
  await assert.rejects(streamed(engine));
  assert.equal((await streamed(engine)).at(-1), "[DONE]");
  assert.equal(await engine.metric("vllm:num_requests_running"), 0);
});

Deno.test("http_error: refused with the status that was asked for", async () => {
  await using engine = await startSimulation("--sim-fault", "http_error:status=429,every=2");
  const codes = [];
  for (let count = 0; count < 4; count += 1) {
    const response = await engine.post(CHAT, chatCase({ max_tokens: 1 }));
    await response.body?.cancel();
    codes.push(response.status);
  }
  assert.deepEqual(codes, [200, 429, 200, 429]);
});

Deno.test("stall: silence in the middle, then the rest, whole", async () => {
  await using engine = await startSimulation("--sim-fault", "stall:after_tokens=5,ms=60");
  const started = performance.now();
  const data = await streamed(engine);
  assert.ok(performance.now() - started >= 55);
  assert.equal(contents(data), 20);
  assert.equal(data.at(-1), "[DONE]");
});

Deno.test("hang: health is 200 and requests are taken, but tokens stand still", async () => {
  await using engine = await startSimulation("--sim-fault", "hang:after_tokens=5");
  const controller = new AbortController();
  const response = await fetch(engine.url + CHAT, {
    method: "POST",
    signal: controller.signal,
    body: JSON.stringify(chatCase({ stream: true, max_tokens: 4_000, ignore_eos: true })),
  });
  assert.equal(response.status, 200);
  await engine.metricWill("vllm:generation_tokens_total", (value) => value >= 5);
  assert.equal(await status(engine, "/health"), 200);
  assert.equal(await status(engine, "/v1/models"), 200);
  assert.equal(await engine.metric("vllm:num_requests_running"), 1);
  assert.equal(await engine.metric("vllm:generation_tokens_total"), 5);
  controller.abort();
  await response.body?.cancel().catch(() => {});
  await engine.metricWill("vllm:num_requests_running", (value) => value === 0);
});

Deno.test("hang with an end: what stood still goes on and completes", async () => {
  await using engine = await startSimulation("--sim-fault", "hang:after_tokens=5,for_ms=50");
  const started = performance.now();
  assert.equal(contents(await streamed(engine)), 20);
  assert.ok(performance.now() - started >= 45);
});

Deno.test("crash: an error in every stream, health 503, then an exit with the code", async () => {
  const fault = "crash:after_tokens=6,code=3,linger_ms=40";
  await using engine = await startSimulation("--sim-fault", fault);
  const body = chatCase({ stream: true, max_tokens: 4_000, ignore_eos: true });
  const both = await Promise.all([streamed(engine, body), streamed(engine, body)]);
  for (const data of both) {
    assert.match(JSON.parse(data.at(-2) ?? "").error.message, /EngineCore encountered an issue/);
    assert.equal(data.at(-1), "[DONE]");
  }
  assert.equal(await status(engine, "/health"), 503);
  const refused = await engine.post(CHAT, chatCase());
  assert.equal(refused.status, 500);
  await refused.body?.cancel();
  await engine.exited;
  assert.deepEqual(engine.exits, [{ code: 3, how: "after_log" }]);
});

Deno.test("kill: the process asks for its end at once", async () => {
  await using engine = await startSimulation("--sim-fault", "kill:after_requests=2");
  await streamed(engine);
  assert.deepEqual(engine.exits, []);
  await streamed(engine);
  assert.deepEqual(engine.exits, [{ code: 137, how: "now" }]);
});

Deno.test("health_lies and wrong_model: everything works, and says it does not", async () => {
  await using engine = await startSimulation(
    ...["--sim-fault", "health_lies:status=500", "wrong_model:name=other"],
  );
  assert.equal(await status(engine, "/health"), 500);
  const models = await (await engine.get("/v1/models")).json();
  assert.deepEqual(models.data.map(({ id }: { id: string }) => id), ["other"]);
  assert.equal((await streamed(engine)).at(-1), "[DONE]");
});

Deno.test("a fault by request strikes that request only, and only where it is allowed", async () => {
  await using open = await startSimulation("--sim-allow-request-faults");
  const faulty = { ...STREAM, sim_fault: "error_after:after_tokens=2" };
  assert.equal(contents(await streamed(open, faulty)), 2);
  assert.equal(contents(await streamed(open)), 20);
  const header = await open.post(CHAT, STREAM, { "x-sim-fault": "http_error:status=503" });
  assert.equal(header.status, 503);
  await header.body?.cancel();
  const unknown = await open.post(CHAT, STREAM, { "x-sim-fault": "nonsense" });
  assert.equal(unknown.status, 400);
  assert.match((await unknown.json()).error.message, /no kind "nonsense"/);

  await using closed = await startSimulation();
  assert.equal(contents(await streamed(closed, faulty)), 20);
});

Deno.test("a fault of the process can be asked for by a request", async () => {
  await using engine = await startSimulation("--sim-allow-request-faults");
  await streamed(engine, { ...STREAM, sim_fault: "kill:code=9" });
  assert.deepEqual(engine.exits, [{ code: 9, how: "now" }]);
});

Deno.test("stop() aborts what runs; with a time to drain it lets it finish and takes no more", async () => {
  const slow = ["--sim-decode-tokens-per-s", "400"];
  await using aborting = await startSimulation(...slow);
  const cut = await aborting.post(CHAT, chatCase({ stream: true, ignore_eos: true }));
  await aborting.simulation.stop(0);
  const data = dataOf(await cut.text());
  assert.ok(!data.join().includes('"finish_reason":"'), "nothing says that it is complete");

  await using draining = await startSimulation(...slow);
  const kept = await draining.post(CHAT, STREAM);
  const stopped = draining.simulation.stop(10_000);
  await assert.rejects(draining.get("/health"), "the port is closed");
  assert.equal(contents(dataOf(await kept.text())), 20);
  await stopped;
});
