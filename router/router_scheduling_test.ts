import { deepEqual, equal, match, ok } from "node:assert/strict";
import { CHAT, endpointsAt, runRouter } from "./testing/running_router.ts";
import { type EngineScript, HEALTHY, openStream, startEngine } from "./testing/scripted_engine.ts";

const ONE_AT_A_TIME = { admission: { models: [{ name: "m", capacity: 1 }] } };

/** Answers once it is told to. */
function held(): { readonly script: EngineScript; readonly release: () => void } {
  const gate = Promise.withResolvers<void>();
  return {
    script: async (call, index) => {
      await gate.promise;
      await HEALTHY(call, index);
    },
    release: gate.resolve,
  };
}

Deno.test("x-heddle-explain tells why a replica was chosen, and only who asks for it", async () => {
  await using first = await startEngine(HEALTHY);
  await using second = await startEngine(HEALTHY);
  await using router = await runRouter({ endpoints: endpointsAt(first.url, second.url) });
  const plain = await router.post("/v1/chat/completions", CHAT);
  await plain.body?.cancel();
  equal(plain.headers.get("x-heddle-explain"), null);
  const headers = { "x-heddle-explain": "1", "x-heddle-band": "gold", "x-heddle-profile": "batch" };
  for (const stream of [false, true]) {
    const answer = await router.post("/v1/chat/completions", { ...CHAT, stream }, { headers });
    await answer.text();
    const told = JSON.parse(answer.headers.get("x-heddle-explain") ?? "");
    equal(told.replica, answer.headers.get("x-heddle-replica"));
    deepEqual([told.band, told.profile, told.waited_for], ["gold", "batch", "none"]);
    equal(told.candidates.length, 2);
  }
});

Deno.test("x-heddle-replica sends a request to that replica or to none", async () => {
  await using first = await startEngine(HEALTHY);
  await using second = await startEngine(HEALTHY);
  await using router = await runRouter({ endpoints: endpointsAt(first.url, second.url) });
  const ask = async (replica: string) => {
    const headers = { "x-heddle-replica": replica };
    const answer = await router.post("/v1/chat/completions", CHAT, { headers });
    await answer.text();
    return answer;
  };
  const any = await router.post("/v1/chat/completions", CHAT);
  await any.text();
  const name = any.headers.get("x-heddle-replica") ?? "";
  for (let index = 0; index < 6; index++) {
    equal((await ask(name)).headers.get("x-heddle-replica"), name);
  }
  equal((await ask("nobody")).status, 503);
});

Deno.test("a key that may not ask is told nothing of the replicas", async () => {
  await using engine = await startEngine(HEALTHY);
  const file = await Deno.makeTempFile();
  try {
    await Deno.writeTextFile(file, "key-1\n");
    await using router = await runRouter({
      endpoints: endpointsAt(engine.url),
      keys: { policy: "key_file", file },
    });
    const answer = await router.post("/v1/chat/completions", CHAT, {
      headers: { authorization: "Bearer key-1", "x-heddle-explain": "1" },
    });
    await answer.text();
    equal(answer.status, 200);
    equal(answer.headers.get("x-heddle-explain"), null);
  } finally {
    await Deno.remove(file);
  }
});

Deno.test("a request waits for room at the replica, and a better band goes first", async () => {
  const gate = held();
  await using engine = await startEngine(gate.script);
  await using router = await runRouter({ endpoints: endpointsAt(engine.url), ...ONE_AT_A_TIME });
  const ask = (band: string, content: string) =>
    router.post("/v1/chat/completions", { model: "m", messages: [{ role: "user", content }] }, {
      headers: { "x-heddle-band": band, "x-heddle-explain": "1" },
    });
  const running = ask("silver", "first");
  await engine.called(1);
  const late = ask("bronze", "second");
  await queuedOf(router, 'heddle_router_queued_requests{model="m",band="bronze"}');
  const soon = ask("platinum", "third");
  await queuedOf(router, 'heddle_router_queued_requests{model="m",band="platinum"}');
  gate.release();
  const answers = await Promise.all([running, late, soon]);
  for (const answer of answers) {
    equal(answer.status, 200);
    await answer.body?.cancel();
  }
  match(engine.calls[1]?.body ?? "", /third/);
  match(engine.calls[2]?.body ?? "", /second/);
  const told = JSON.parse(answers[2]?.headers.get("x-heddle-explain") ?? "");
  equal(told.waited_for, "saturated");
});

Deno.test("a full queue is 429 with a wait, and one that leaves the queue leaves no trace", async () => {
  const gate = held();
  await using engine = await startEngine(gate.script);
  await using router = await runRouter({
    endpoints: endpointsAt(engine.url),
    admission: {
      models: [{ name: "m", capacity: 1, band: "bronze" }],
      bands: { bronze: { requests_max: 1 } },
    },
  });
  const running = router.post("/v1/chat/completions", CHAT);
  await engine.called(1);
  const leave = new AbortController();
  const waiting = router.post("/v1/chat/completions", CHAT, { signal: leave.signal });
  await queuedOf(router, 'heddle_router_queued_requests{model="m",band="bronze"}');
  const refused = await router.post("/v1/chat/completions", CHAT);
  equal(refused.status, 429);
  ok(Number(refused.headers.get("retry-after")) >= 1);
  const { error } = await refused.json();
  deepEqual([error.code, error.type], ["queue_full", "rate_limit_error"]);
  leave.abort();
  await waiting.catch(() => {});
  equal((await router.record(2)).outcome, "client_closed");
  gate.release();
  await (await running).body?.cancel();
  equal((await router.record(3)).outcome, "ok");
  equal(engine.calls.length, 1);
  equal(await router.metric("heddle_router_requests_in_flight"), 0);
});

Deno.test("what an engine says of cached tokens is counted against what was expected", async () => {
  await using engine = await startEngine((call) => {
    openStream(call);
    call.response.end(
      'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}\n\n' +
        'data: {"choices":[],"usage":{"prompt_tokens":400,"completion_tokens":1,' +
        '"prompt_tokens_details":{"cached_tokens":320}}}\n\ndata: [DONE]\n\n',
    );
  });
  await using router = await runRouter({ endpoints: endpointsAt(engine.url) });
  const body = {
    model: "m",
    stream: true,
    messages: [{ role: "user", content: "word ".repeat(400) }],
  };
  for (let times = 0; times < 2; times++) {
    await (await router.post("/v1/chat/completions", body)).text();
    await router.record(times + 1);
  }
  equal(await router.metric('heddle_router_prefix_tokens_total{kind="found"}'), 640);
  ok((await router.metric('heddle_router_prefix_tokens_total{kind="expected"}') ?? 0) > 400);
});

Deno.test("a model whose only replica is gone is refused at once, not queued for it", async () => {
  const gone = await startEngine(HEALTHY);
  await gone[Symbol.asyncDispose]();
  await using router = await runRouter({ endpoints: endpointsAt(gone.url) });
  for (let times = 1; times <= 3; times++) {
    const answer = await router.post("/v1/chat/completions", CHAT);
    await answer.body?.cancel();
    equal(answer.status, 503);
    ok((await router.record(times)).durationMs < 3_000);
  }
});

/** Round trips until something waits there. */
async function queuedOf(
  router: { metric(line: string): Promise<number | undefined>; tick(): Promise<void> },
  line: string,
): Promise<void> {
  while (await router.metric(line) !== 1) await router.tick();
}
