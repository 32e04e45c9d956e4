/** `heddle bench` as a process against a simulated engine, without any control. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { join } from "node:path";
import { eventually, freePorts, metricOf, ROOT, startSim } from "./processes.ts";

const FAST = ["--sim-overhead-ms", "0", "--sim-decode-tokens-per-s", "4000", "--max-num-seqs", "4"];

async function bench(url: string, args: readonly string[]) {
  const { code, stdout, stderr } = await new Deno.Command(join(ROOT, "bin/heddle"), {
    args: ["bench", "served", "--endpoint", url, "--seconds", "1", "--json", ...args],
    env: { HEDDLE_DENO: Deno.execPath(), NO_COLOR: "1" },
    stdin: "null",
  }).output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { code, out: text(stdout), err: text(stderr) };
}

Deno.test("heddle bench finds where a real engine stops keeping its promise, and leaves it idle", async () => {
  const [port = 0] = freePorts(1);
  await using engine = await startSim({ port, args: FAST });
  const { code, out, err } = await bench(`${engine.url}/v1`, ["--max", "8", "--ttft", "5s"]);
  equal(code, 0, err);
  const found = JSON.parse(out);
  deepEqual([found.model, found.shape], ["served", "chat"]);
  ok(found.best.goodput > 0 && found.best.within > 0.9);
  ok(found.best.completionTokensPerS > 0 && found.best.ttftMs.p99 > 0);
  equal(found.levels[0].concurrency, 1);
  match(err, /^AT A TIME +GOOD\/S/);
  await eventually(
    "the engine is idle",
    async () => await metricOf(engine.url, "vllm:num_requests_running") === 0 || undefined,
    2_000,
  );
});

Deno.test("heddle bench says why no request kept the promise, and exits with 1", async () => {
  const [port = 0] = freePorts(1);
  await using engine = await startSim({ port, args: FAST, key: "sk-engine" });
  const { code, out } = await bench(engine.url, ["--max", "2"]);
  equal(code, 1);
  match(JSON.parse(out).levels[0].error, /^401 /);
});
