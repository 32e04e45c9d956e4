/** The agent's judgement of a real process that hangs, with a clock that jumps from probe to probe. */
import { equal, match, ok } from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { readLoad } from "./edge/engine/load.ts";
import { freePort } from "./edge/engine/free_port_fake.ts";
import { eventually } from "./eventually_fake.ts";
import { Effects } from "./effects.ts";
import { sim as adapter } from "./engines/sim.ts";
import { step, wakeAt } from "./core/shard/lifecycle.ts";
import type { Shard } from "./core/shard/shard.ts";
import { aShard } from "./core/shard/shard_fake.ts";
import { openNode } from "./supervisor_fake.ts";

const SIM = fileURLToPath(new URL("../bin/heddle-sim", import.meta.url));
const KEY = "sk-heddle-replica-secret";
/** Long enough for an engine that works, on a machine that is busy. */
const TOKEN_MS_MAX = 2_000;
const { signal } = new AbortController();

interface Sim extends AsyncDisposable {
  readonly port: number;
  /** The engine's own numbers. */
  load(): ReturnType<typeof readLoad>;
  /** Begins a long answer; resolves with the response once its first bytes are there. */
  ask(): Promise<Response>;
}

async function startSim(fault: string): Promise<Sim> {
  const port = freePort();
  const args = [
    "serve",
    "demo",
    "--port",
    String(port),
    "--sim-load-ms",
    "0",
    "--sim-fault",
    fault,
  ];
  const child = new Deno.Command(SIM, {
    args,
    env: { HEDDLE_DENO: Deno.execPath(), VLLM_API_KEY: KEY },
    stdout: "null",
    stderr: "null",
  }).spawn();
  const engine = { address: { host: "127.0.0.1", port }, apiKey: KEY, signal };
  const load = () => readLoad(engine, adapter.load);
  await eventually("it serves", async () => (await load()).running !== undefined);
  return {
    port,
    load,
    ask: () =>
      fetch(`http://127.0.0.1:${port}/v1/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "demo", prompt: "a", max_tokens: 500, stream: true }),
      }),
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.status;
    },
  };
}

/** Probes until `done`, at most an hour of the shard's time; every state it was in, in order. */
async function watch(effects: Effects, from: Shard, done: (shard: Shard) => boolean) {
  let shard = from;
  const reasons: string[] = [];
  let now = 0;
  while (!done(shard) && now < 3_600_000) {
    now = Math.max(now, wakeAt(shard) ?? Infinity);
    const asked = step(shard, { type: "tick" }, now);
    shard = asked.shard;
    for (const effect of asked.effects) {
      const event = await effects.run(shard, effect, signal);
      if (event !== undefined) shard = step(shard, event, now).shard;
    }
    const { state } = shard;
    const reason = state.kind === "degraded" ? state.reason : state.kind;
    if (reasons.at(-1) !== reason) reasons.push(reason);
  }
  return { shard, reasons };
}

async function withEngine(
  fault: string,
  work: (sim: Sim, effects: Effects, shard: Shard) => Promise<void>,
): Promise<void> {
  await using node = await openNode();
  await using sim = await startSim(fault);
  const effects = new Effects({
    store: node.store,
    launcher: node.launcher,
    address: "127.0.0.1",
    prepare: () => Promise.reject(new Error("nothing is started here")),
    makeHandle: () => "h",
    tokenMsMax: TOKEN_MS_MAX,
  });
  await work(sim, effects, aShard("ready", { spec: { portFirst: sim.port } }));
}

Deno.test("an engine that hangs with requests while /health is 200 is degraded, then ended as hung", async () => {
  await withEngine("hang:after_tokens=4", async (sim, effects, shard) => {
    const answer = await sim.ask();
    await eventually("it hangs", async () => {
      const [before, after] = [await sim.load(), await sim.load()];
      return before.running === 1 && before.progress === after.progress && before.progress !== 0;
    });
    const health = await fetch(`http://127.0.0.1:${sim.port}/health`);
    await health.body?.cancel();
    equal(health.status, 200);
    const { shard: end, reasons } = await watch(
      effects,
      shard,
      ({ state }) => state.kind === "stopping",
    );
    equal(reasons.join(), "ready,engine_hung,stopping");
    ok(end.state.kind === "stopping" && end.state.ending.kind === "failed");
    equal(end.state.ending.failure.reason, "engine_hung");
    await answer.body?.cancel();
  });
});

Deno.test("an engine that hangs while nobody asks is found by the token that it does not give", async () => {
  await withEngine("hang", async (_, effects, shard) => {
    const { reasons } = await watch(effects, shard, ({ state }) => state.kind === "degraded");
    equal(reasons.at(-1) === "no_token" || reasons.at(-1) === "engine_hung", true, reasons.join());
  });
});

Deno.test("an engine whose /health lies is degraded, and never ended for it", async () => {
  await withEngine("health_lies:status=503", async (_, effects, shard) => {
    const { shard: end, reasons } = await watch(effects, shard, () => false);
    equal(reasons.join(), "ready,not_answering");
    ok(end.state.kind === "degraded");
    match(end.state.message, /503/);
    equal(end.state.hungSince, undefined);
  });
});

Deno.test("an engine that works stays ready, however long nobody asks", async () => {
  await withEngine("stall:after_tokens=100000,ms=1", async (_, effects, shard) => {
    const { reasons } = await watch(effects, shard, () => false);
    equal(reasons.join(), "ready");
  });
});
