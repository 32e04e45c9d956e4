import { deepEqual, equal } from "node:assert/strict";
import type { EngineSample } from "../../core/load/engine_sample.ts";
import { type EngineScript, startEngine } from "../../testing/scripted_engine.ts";
import { createUpstreamPool, UPSTREAM_DEFAULTS } from "../upstream.ts";
import { scrapeLoop } from "./scrape_loop.ts";

const METRICS = "vllm:num_requests_running 3\nvllm:num_requests_waiting 1\n";

const SAYS: EngineScript = (call) => {
  call.response.writeHead(200, { "content-type": "text/plain" });
  call.response.end(METRICS);
};

/** What was observed in the first round of asking engines of these URLs. */
async function round(urls: readonly string[], apiKey = "") {
  const stop = new AbortController();
  using pool = createUpstreamPool(UPSTREAM_DEFAULTS);
  const observed: [string, EngineSample][] = [];
  await scrapeLoop({
    intervalMs: 60_000,
    pool,
    targets: () =>
      urls.map((url, index) => ({
        origin: { secure: false, host: "127.0.0.1", port: Number(new URL(url).port), basePath: "" },
        apiKey,
        replicaIds: [`r${index}`, `s${index}`],
      })),
    observe: (replicaId, sample) => observed.push([replicaId, sample]),
    onRound: () => stop.abort(),
  }, stop.signal);
  return observed;
}

Deno.test("scrapeLoop() asks each server once, with its key, for all the replicas that it is", async () => {
  await using engine = await startEngine(SAYS);
  const observed = await round([engine.url], "secret");
  deepEqual(observed.map(([id, { running, waiting }]) => [id, running, waiting]), [
    ["r0", 3, 1],
    ["s0", 3, 1],
  ]);
  equal(engine.calls.length, 1);
  equal(engine.calls[0]?.path, "/metrics");
  equal(engine.calls[0]?.headers.authorization, "Bearer secret");
});

Deno.test("scrapeLoop() gets over engines that refuse, talk nonsense, or are gone", async () => {
  await using refuses = await startEngine((call) => {
    call.response.writeHead(404);
    call.response.end(METRICS);
  });
  await using nonsense = await startEngine((call) => {
    call.response.writeHead(200);
    call.response.end("<html></html>");
  });
  await using cuts = await startEngine((call) => {
    call.response.writeHead(200, { "content-length": "1000" });
    call.response.write("vllm:num");
    call.response.socket?.destroy();
  });
  await using well = await startEngine(SAYS);
  const gone = await startEngine(SAYS);
  await gone[Symbol.asyncDispose]();
  const observed = await round([refuses.url, nonsense.url, cuts.url, gone.url, well.url]);
  deepEqual(observed.map(([id]) => id), ["r4", "s4"]);
});
