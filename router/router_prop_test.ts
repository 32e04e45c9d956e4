import { deepEqual, equal, ok } from "node:assert/strict";
import net from "node:net";
import fc from "fast-check";
import { endpointsAt, type RunningRouter, runRouter } from "./testing/running_router.ts";
import {
  CHAT_STREAM,
  chunk,
  cut,
  DONE_EVENT,
  type EngineCall,
  event,
  HEALTHY,
  openStream,
  type ScriptedEngine,
  sendJson,
  startEngine,
} from "./testing/scripted_engine.ts";

/** What an engine may do to a request; the request's own words choose it. */
const ENDINGS: Record<string, (call: EngineCall) => void> = {
  healthy: (call) => void HEALTHY(call, 0),
  silent: () => {},
  cut,
  busy: (call) => sendJson(call, 429, { error: { message: "full" } }),
  boom: (call) => sendJson(call, 500, { detail: "boom" }),
  refuse: (call) => sendJson(call, 400, { error: { message: "no" } }),
  html: (call) => call.response.end("<html>"),
  half: (call) => {
    openStream(call);
    call.response.write(chunk({ content: "1" }), () => cut(call));
  },
  stuck: (call) => {
    openStream(call);
    call.response.write(chunk({ role: "assistant", content: "" }) + chunk({ content: "1" }));
  },
  done: (call) => {
    openStream(call);
    call.response.end(DONE_EVENT);
  },
  error: (call) => {
    openStream(call);
    call.response.end(chunk({ content: "1" }) + event({ error: { message: "x" } }));
  },
  early: (call) => {
    openStream(call);
    call.response.end(CHAT_STREAM.slice(0, 3).join(""));
  },
};

const requests = fc.record({
  ending: fc.constantFrom(...Object.keys(ENDINGS)),
  /** Whether the second engine tried does the same, or is healthy. */
  everywhere: fc.boolean(),
  stream: fc.boolean(),
  body: fc.constantFrom("good", "garbage", "unknown_model"),
  /** After how many ms the client leaves; undefined: it stays. */
  leaveMs: fc.option(fc.nat(40), { nil: undefined }),
});
type RandomRequest = typeof requests extends fc.Arbitrary<infer T> ? T : never;

Deno.test("every counter is back at zero and every request has one record, whatever the endings", async () => {
  const script = (isFirst: boolean) => (call: EngineCall) => {
    const { ending, everywhere } = JSON.parse(call.body).fate;
    if (isFirst || everywhere) ENDINGS[ending]?.(call);
    else void HEALTHY(call, 0);
  };
  await using first = await startEngine(script(true));
  await using second = await startEngine(script(false));
  const engines = [first, second];
  await using router = await runRouter({
    endpoints: endpointsAt(first.url, second.url).map((endpoint, index) => ({
      ...endpoint,
      priority: -index,
    })),
    timeouts: {
      first_byte: "60ms",
      whole_answer: "60ms",
      between_chunks: "60ms",
      first_byte_per_1k_tokens: "0s",
    },
  });
  let expected = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(requests, { minLength: 1, maxLength: 16 }), async (list) => {
      await Promise.all(list.map((each) => send(router, each)));
      expected += list.length;
      await router.record(expected);
      await settled(router, engines);
      equal(router.records.length, expected);
      equal(new Set(router.records.map(({ requestId }) => requestId)).size, expected);
    }),
    { numRuns: 40, endOnFailure: true },
  );
  ok(expected > 100);
});

/** Sends one request over a socket of its own, so that it surely arrives before its client leaves. */
function send(router: RunningRouter, { body, leaveMs, ...fate }: RandomRequest): Promise<void> {
  const json = JSON.stringify({
    model: body === "unknown_model" ? "nope" : "m",
    stream: fate.stream,
    messages: [],
    fate,
  });
  const text = body === "garbage" ? json.slice(1) : json;
  return new Promise((resolve, reject) => {
    const socket = net.connect({ host: "127.0.0.1", port: Number(new URL(router.url).port) });
    let answer = "";
    let timer: ReturnType<typeof setTimeout> | undefined;
    socket.on("data", (part) => answer += part);
    socket.on("error", () => {});
    socket.on("close", () => {
      clearTimeout(timer);
      const whole = answer.endsWith("0\r\n\r\n");
      const streamed = answer.includes("text/event-stream");
      if (streamed && whole !== answer.includes("[DONE]")) reject(new Error(answer));
      else resolve();
    });
    socket.write(
      "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\n" +
        `content-length: ${text.length}\r\n\r\n${text}`,
      () => {
        if (leaveMs !== undefined) timer = setTimeout(() => socket.destroy(), leaveMs);
      },
    );
  });
}

async function settled(router: RunningRouter, engines: readonly ScriptedEngine[]): Promise<void> {
  const names = [
    "heddle_router_requests_in_flight",
    'heddle_router_replica_in_flight{replica="e0"}',
    'heddle_router_replica_in_flight{replica="e1"}',
    'heddle_router_engine_connections{state="busy"}',
  ];
  const values = await Promise.all(names.map((name) => router.metric(name)));
  deepEqual(values, [0, 0, 0, 0]);
  for (const engine of engines) {
    for (const { response, aborted } of engine.calls.splice(0)) {
      if (!response.writableFinished) await aborted;
    }
  }
}
