/**
 * An engine that costs nearly nothing: a fixed answer, or a stream whose events say when they were
 * sent. A process of its own, so that its work is not measured with a gateway's.
 */
import http from "node:http";
import type { ServerResponse } from "node:http";

/** Events of a stream, and how far apart: a fast engine's. */
const EVENTS = 32;
const GAP_MS = 10;

const USAGE = { prompt_tokens: 250, completion_tokens: EVENTS, total_tokens: 250 + EVENTS };

const ANSWER = JSON.stringify({
  id: "chatcmpl-bench",
  object: "chat.completion",
  created: 1,
  model: "m",
  choices: [{
    index: 0,
    message: { role: "assistant", content: "word ".repeat(180) },
    finish_reason: "stop",
  }],
  usage: USAGE,
});

/** Milliseconds on a clock that all processes of a machine share. */
function now(): number {
  return performance.timeOrigin + performance.now();
}

function chunk(choices: unknown, more: Record<string, unknown> = {}): string {
  const head = { id: "chatcmpl-bench", object: "chat.completion.chunk", created: 1, model: "m" };
  return `data: ${JSON.stringify({ ...head, choices, ...more })}\n\n`;
}

interface Pace {
  readonly events: number;
  readonly gapMs: number;
}

function stream(response: ServerResponse, { events, gapMs }: Pace): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  let sent = 0;
  const send = (): void => {
    const delta = { content: " word" };
    response.write(chunk([{ index: 0, delta, finish_reason: null }], { t: now() }));
    if (++sent < events) return;
    clearInterval(timer);
    response.write(chunk([{ index: 0, delta: {}, finish_reason: "stop" }]));
    response.write(chunk([], { usage: USAGE }));
    response.end("data: [DONE]\n\n");
  };
  const timer = setInterval(send, gapMs);
  response.on("close", () => clearInterval(timer));
  send();
}

/** What is looked at of a body: its members but the messages stand at one of its ends. */
const EDGE_BYTES = 512;
const text = new TextDecoder();

const server = http.createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
  let head = "";
  let tail = "";
  request.on("data", (part: Uint8Array) => {
    if (head === "") head = text.decode(part.subarray(0, EDGE_BYTES));
    tail = text.decode(part.subarray(-EDGE_BYTES));
  });
  request.on("end", () => {
    if (request.method === "GET") return response.end('{"object":"list","data":[{"id":"m"}]}');
    // Gateways write the members in an order of their own.
    const edges = head + tail;
    const asked = (name: string, otherwise: number): number =>
      Number(new RegExp(`"${name}": ?(\\d+)`).exec(edges)?.[1] ?? otherwise);
    if (/"stream": ?true/.test(edges)) {
      return stream(response, {
        events: asked("bench_events", EVENTS),
        gapMs: asked("bench_gap_ms", GAP_MS),
      });
    }
    // Without end, for clients that leave.
    if (/"bench_hang": ?true/.test(edges)) return;
    if (/"bench_cut": ?true/.test(edges)) return response.socket?.destroy();
    response.writeHead(200, { "content-type": "application/json" }).end(ANSWER);
  });
});
server.listen({ host: "127.0.0.1", port: Number(Deno.args[0]) }, () => {
  Deno.stdout.writeSync(new TextEncoder().encode("ready\n"));
});
