/**
 * Engines that fail in every way they can, as real processes, under concurrent streams. A failure is
 * a request that had no content when the fault struck and was not answered in full, although a
 * healthy replica was there. There must be none; what had content ends in one error event.
 */
import { Buffer } from "node:buffer";
import { equal, ok } from "node:assert/strict";
import { createServer } from "node:net";
import { freePorts, metricOf, type RunningProcess, startRouter, startSim } from "./processes.ts";

const STREAMS = 200;
const HEALTHY = 2;
const SLOW = ["--sim-decode-tokens-per-s", "60", "--sim-decode-tokens-per-s-total", "4000"];

/** What a client of HTTP may meet where an engine ought to be. */
const GARBAGE = [
  "SSH-2.0-OpenSSH_9.2p1\r\n",
  "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>",
  "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}",
  "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\ndata: no JSON\n\n",
  "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\nhello",
  "\0\xff\n\n",
];

interface Fault {
  readonly name: string;
  /** It stands where the faulty engine would, and answers nothing but garbage. */
  readonly garbage?: true;
  /** How the faulty engine is started. */
  readonly args?: readonly string[];
  /** What happens to it while all streams are under way. */
  readonly strike?: (engine: Engine) => void;
}

const FAULTS: readonly Fault[] = [
  { name: "killed", strike: (engine) => engine.signal("SIGKILL") },
  { name: "frozen", strike: (engine) => engine.signal("SIGSTOP") },
  { name: "terminated", strike: (engine) => engine.signal("SIGTERM") },
  { name: "hangs with health 200", args: ["--sim-fault", "hang:after_requests=10"] },
  { name: "crashes and lingers", args: ["--sim-fault", "crash:after_requests=10,linger_ms=2000"] },
  { name: "cuts streams", args: ["--sim-fault", "cut_stream:after_tokens=5,every=2"] },
  { name: "cuts before the first token", args: ["--sim-fault", "cut_stream:after_tokens=0"] },
  { name: "errors as first event", args: ["--sim-fault", "error_first:every=1"] },
  { name: "errors after content", args: ["--sim-fault", "error_after:after_tokens=5,every=2"] },
  { name: "ends early with [DONE]", args: ["--sim-fault", "end_early:after_tokens=5,done=true"] },
  { name: "ends at once with [DONE]", args: ["--sim-fault", "end_early:after_tokens=0,done=true"] },
  { name: "answers 500", args: ["--sim-fault", "http_error:status=500"] },
  { name: "answers 503", args: ["--sim-fault", "http_error:status=503"] },
  { name: "answers garbage", garbage: true },
  { name: "is slow", args: ["--sim-decode-tokens-per-s", "8"] },
  { name: "stalls in the middle", args: ["--sim-fault", "stall:after_tokens=5,every=2,ms=60000"] },
];

Deno.test("no request without content fails while a healthy replica is there", async (t) => {
  const ports = freePorts(HEALTHY);
  const healthy = await Promise.all(ports.map((port) => startSim({ port, args: SLOW })));
  try {
    for (const fault of FAULTS) {
      await t.step(fault.name, async () => {
        const [port = 0] = freePorts(1);
        const args = [...SLOW, ...fault.args ?? []];
        await using faulty = await (fault.garbage ? startGarbage() : startSim({ port, args }));
        const tally = await strike(fault, faulty, [faulty, ...healthy].map(({ url }) => url));
        equal(tally.failed.join("\n"), "");
        equal(tally.served + tally.broken, STREAMS);
        // A stalled or frozen engine may not have had anything to lose yet.
        ok(tally.served >= STREAMS / 2, `${tally.served} served`);
      });
    }
  } finally {
    for (const engine of healthy) await engine[Symbol.asyncDispose]();
  }
});

/** What of a process a fault needs. */
type Engine = Pick<RunningProcess, "url" | "signal"> & AsyncDisposable;

async function startGarbage(): Promise<Engine> {
  let count = 0;
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.on(
      "data",
      () => socket.end(Buffer.from(GARBAGE[count++ % GARBAGE.length] ?? "", "latin1")),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const bound = server.address();
  ok(typeof bound === "object" && bound !== null);
  return {
    url: `http://127.0.0.1:${bound.port}`,
    signal: () => {},
    [Symbol.asyncDispose]: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

interface Tally {
  served: number;
  /** Ended in one error event after content. */
  broken: number;
  readonly failed: string[];
}

async function strike(fault: Fault, faulty: Engine, urls: string[]): Promise<Tally> {
  const state = await Deno.makeTempDir();
  try {
    await using router = await startRouter(state, {
      endpoints: urls.map((url, index) => ({
        name: `e${index}`,
        url,
        models: [{ name: "m", served_name: "served" }],
      })),
      timeouts: { first_byte: "3s", first_byte_per_1k_tokens: "0s", between_chunks: "3s" },
    });
    const tally: Tally = { served: 0, broken: 0, failed: [] };
    let begun = 0;
    const streams = Array.from({ length: STREAMS }, async () => {
      await stream(router.url, tally, () => {
        // Half of the streams have content, the others wait for theirs.
        if (++begun === STREAMS / 2) fault.strike?.(faulty);
      });
    });
    await Promise.all(streams);
    equal(await metricOf(router.admin, "heddle_router_requests_in_flight"), 0);
    equal(await metricOf(router.admin, "heddle_router_replica_in_flight"), 0);
    return tally;
  } finally {
    await Deno.remove(state, { recursive: true });
  }
}

async function stream(url: string, tally: Tally, onContent: () => void): Promise<void> {
  let text = "";
  let content = false;
  try {
    const response = await fetch(`${url}/v1/completions`, {
      method: "POST",
      body: JSON.stringify({ model: "m", prompt: "count", max_tokens: 40, stream: true }),
    });
    const decoder = new TextDecoder();
    for await (const part of response.body ?? []) {
      text += decoder.decode(part, { stream: true });
      if (!content && text.includes('"text":')) {
        content = true;
        onContent();
      }
    }
    if (response.status === 200 && text.endsWith("data: [DONE]\n\n")) tally.served++;
    else tally.failed.push(`${response.status}: ${text}`);
  } catch (error) {
    const told = text.match(/^data: \{"error":/gm)?.length === 1 && !text.includes("[DONE]");
    if (content && told) tally.broken++;
    else tally.failed.push(`${error}: ${text}`);
  }
}
