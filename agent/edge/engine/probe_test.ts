import { deepEqual, equal, match, ok } from "node:assert/strict";
import { probeEngine } from "@heddle/common/engine/probe";
import { eventually } from "../../eventually_fake.ts";
import { startEngineFake } from "./engine_fake.ts";
import { freePort } from "./free_port_fake.ts";
import { readLoad } from "./load.ts";

const NOT_HERE = { status: 404, body: { error: { message: "does not" } } };

const { signal } = new AbortController();

async function probe(replies: Parameters<typeof startEngineFake>[0], token = true) {
  await using engine = await startEngineFake(replies);
  const outcome = await probeEngine({
    address: engine.address,
    model: "demo",
    apiKey: "k",
    token,
    tokenMsMax: 60_000,
    signal,
  });
  return { outcome, asked: engine.asked };
}

Deno.test("probeEngine() asks for health, the model and one token, with the replica's key", async () => {
  const { outcome, asked } = await probe({});
  deepEqual(outcome, { kind: "ready", maxModelLen: 8192 });
  deepEqual(asked, [
    "GET /health Bearer k",
    "GET /v1/models Bearer k",
    "POST /v1/completions Bearer k",
  ]);
});

Deno.test("probeEngine() asks a busy engine for no token", async () => {
  const { outcome, asked } = await probe({ "/v1/completions": "hang" }, false);
  equal(outcome.kind, "ready");
  equal(asked.length, 2);
});

Deno.test("probeEngine() takes a refused connection and a 503 for an engine that loads", async () => {
  const refused = await probeEngine({
    address: { host: "127.0.0.1", port: freePort() },
    model: "demo",
    apiKey: "k",
    token: true,
    tokenMsMax: 60_000,
    signal,
  });
  deepEqual(refused, { kind: "waiting", why: "nothing listens on its port yet" });
  const loading = { status: 503, body: { error: { message: "Loading model" } } };
  const { outcome } = await probe({ "/health": loading });
  ok(outcome.kind === "waiting");
  match(outcome.why, /503 .*Loading model/);
});

Deno.test("probeEngine() knows an engine that lies about its health", async () => {
  const cases: [Parameters<typeof startEngineFake>[0], string][] = [
    [{ "/v1/models": { status: 200, body: { data: [{ id: "other" }] } } }, "model_not_listed"],
    [{ "/v1/completions": { status: 500, body: "engine is dead" } }, "no_token"],
    [{ "/v1/completions": { status: 200, body: { choices: [] } } }, "no_token"],
    [{ "/v1/completions": { status: 200, body: { error: { message: "x" } } } }, "no_token"],
    [{ "/v1/completions": "cut" }, "no_token"],
    [{ "/v1/models": { status: 401, body: {} } }, "wrong_key"],
    [{ "/health": { status: 401, body: {} } }, "wrong_key"],
    [{ "/v1/completions": { status: 401, body: {} } }, "wrong_key"],
  ];
  for (const [replies, reason] of cases) {
    const { outcome } = await probe(replies);
    equal(outcome.kind === "wrong" && outcome.reason, reason, JSON.stringify(replies));
  }
});

Deno.test("probeEngine() finds another way for models that only chat, or only embed", async () => {
  const chat = await probe({
    "/v1/completions": NOT_HERE,
    "/v1/chat/completions": { status: 200, body: { choices: [{ message: { content: "" } }] } },
  });
  equal(chat.outcome.kind, "ready");
  const embed = await probe({
    "/v1/completions": { status: 400, body: {} },
    "/v1/chat/completions": { status: 400, body: {} },
    "/v1/embeddings": { status: 200, body: { data: [{ embedding: [0.5] }] } },
  });
  equal(embed.outcome.kind, "ready");
  const none = await probe({ "/v1/completions": NOT_HERE });
  equal(none.outcome.kind === "wrong" && none.outcome.reason, "no_token");
});

Deno.test("readLoad() reads the metrics, and knows nothing of an engine that has none", async () => {
  await using engine = await startEngineFake({
    "/metrics": { status: 200, body: "running 3\nwaiting 0\n" },
  });
  const names = { running: ["running"], waiting: ["waiting"], kvUsage: ["kv"], progress: [] };
  const leader = { address: engine.address, apiKey: "k", signal };
  deepEqual(await readLoad(leader, names), { running: 3, waiting: 0 });
  engine.replies = { "/metrics": { status: 501, body: {} } };
  deepEqual(await readLoad(leader, names), {});
});

Deno.test("probeEngine() gives up at once when it is told to", async () => {
  await using engine = await startEngineFake({ "/v1/completions": "hang" });
  const stop = new AbortController();
  const begunAt = performance.now();
  const outcome = probeEngine({
    address: engine.address,
    model: "demo",
    apiKey: "k",
    token: true,
    tokenMsMax: 60_000,
    signal: stop.signal,
  });
  await eventually("it asks for a token", () => engine.asked.length === 3);
  stop.abort();
  equal((await outcome).kind, "wrong");
  ok(performance.now() - begunAt < 10_000);
});
