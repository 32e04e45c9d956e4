/**
 * Engines that fail in every way they can, as real processes, under concurrent streams. A failure is
 * a request that had no content when the fault struck and was not answered in full, although a
 * healthy replica was there. There must be none; what had content ends in one error event.
 */
import { equal, ok } from "node:assert/strict";
import { freePorts, metricOf, type RunningProcess, startRouter, startSim } from "./processes.ts";

const STREAMS = 60;
const HEALTHY = 2;
const SLOW = ["--sim-decode-tokens-per-s", "60", "--sim-decode-tokens-per-s-total", "4000"];

interface Fault {
  readonly name: string;
  /** How the faulty engine is started. */
  readonly args?: readonly string[];
  /** What happens to it while all streams are under way. */
  readonly strike?: (engine: RunningProcess) => void;
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
  { name: "stalls in the middle", args: ["--sim-fault", "stall:after_tokens=5,every=2,ms=60000"] },
];

Deno.test("no request without content fails while a healthy replica is there", async (t) => {
  const ports = freePorts(HEALTHY);
  const healthy = await Promise.all(ports.map((port) => startSim({ port, args: SLOW })));
  try {
    for (const fault of FAULTS) {
      await t.step(fault.name, async () => {
        const [port = 0] = freePorts(1);
        await using faulty = await startSim({ port, args: [...SLOW, ...fault.args ?? []] });
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

interface Tally {
  served: number;
  /** Ended in one error event after content. */
  broken: number;
  readonly failed: string[];
}

async function strike(fault: Fault, faulty: RunningProcess, urls: string[]): Promise<Tally> {
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
