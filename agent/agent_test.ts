import { equal, match, ok } from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { create } from "@bufbuild/protobuf";
import { startLogging } from "@heddle/common/log";
import { startMetrics } from "@heddle/common/metrics";
import { ReadLogSchema, StartShardSchema, StopShardSchema } from "@heddle/proto/gen/agent";
import { HcaRefSchema, type ShardSpec, ShardSpecSchema } from "@heddle/proto/gen/types";
import { encodeRevision } from "@heddle/proto/revision";
import { decodeShardState } from "@heddle/proto/shard_state";
import { runAgent } from "./agent.ts";
import { configSchema } from "./config.ts";
import { type FakeSession, startControlFake } from "./edge/session/control_fake.ts";
import { freePort } from "./edge/engine/free_port_fake.ts";

await startLogging({ format: "text", level: "info", write: () => {} });

const SHIM = fileURLToPath(new URL("../bin/heddle-shim", import.meta.url));
const FETCH = fileURLToPath(new URL("../bin/heddle-fetch", import.meta.url));
const SIM = fileURLToPath(new URL("../bin/heddle-sim", import.meta.url));

function simSpec(port: number, shardId = "1-1/0", args: string[] = []): ShardSpec {
  return create(ShardSpecSchema, {
    shardId,
    args,
    replicaId: "1-1",
    shardCount: 1,
    attempt: 1,
    model: "demo",
    profile: "sim",
    fingerprint: "f",
    engine: "sim",
    source: "demo",
    tp: 1,
    pp: 1,
    dp: 1,
    portFirst: port,
    portCount: 4,
    startupTimeoutMs: 30_000,
    stopTimeoutMs: 5_000,
  });
}

interface Running {
  metrics(): Promise<string>;
  stop(): Promise<void>;
}

function startAgent(url: string, state: string): Running {
  const config = configSchema.parse({
    node: "n1",
    control: [url],
    address: "127.0.0.1",
    state_directory: state,
    sysfs_root: `${state}/sys`,
    model_dirs: [state],
    engine_ports: { first: 1024, last: 65535, block: 16 },
    engines: [{ name: "sim", path: SIM }],
    engine_env: {
      HEDDLE_DENO: Deno.execPath(),
      DENO_DIR: Deno.env.get("DENO_DIR") ?? `${Deno.env.get("HOME")}/.cache/deno`,
    },
  });
  const stop = new AbortController();
  const metrics = startMetrics("heddle-agent");
  const running = runAgent(
    { config, node: "n1", shim: SHIM, fetch: FETCH, install: FETCH, nvidiaSmi: undefined },
    metrics,
    { signal: stop.signal, onReady: () => {} },
  );
  return {
    metrics: () => metrics.registry.metrics(),
    async stop() {
      stop.abort();
      await running;
      metrics.stop();
    },
  };
}

function start(session: FakeSession, spec: ShardSpec, sequence: number): void {
  const revision = encodeRevision({ term: 1, sequence });
  session.send({ case: "startShard", value: create(StartShardSchema, { revision, spec }) });
}

/** All lines of a source; rejects with what the agent says when there is no such source. */
async function readLog(session: FakeSession, source: string): Promise<string[]> {
  const requestId = crypto.randomUUID();
  session.send({
    case: "readLog",
    value: create(ReadLogSchema, { requestId, source, tailLines: 100 }),
  });
  const lines: string[] = [];
  while (true) {
    const chunk = await session.logChunk();
    lines.push(...chunk.lines);
    if (chunk.error !== "") throw new Error(chunk.error);
    if (chunk.end) return lines;
  }
}

Deno.test("the agent starts the simulated engine, is restarted, adopts it and stops it", async () => {
  const state = await Deno.makeTempDir();
  const control = await startControlFake({ heartbeatMs: 200 });
  try {
    const port = freePort();
    const first = startAgent(control.url, state);
    const session = await control.session();
    equal(session.register.node, "n1");
    start(session, simSpec(port), 1);
    equal((await session.result()).accepted, true);
    const ready = await session.status("ready");
    const log = await readLog(session, "1-1/0");
    ok(log.some((line) => line.includes("demo")), log.join("\n"));
    ok(!log.some((line) => line.includes(ready.apiKey)));
    ok((await readLog(session, "agent")).some((line) => line.includes("Shard is ready")));
    const unknown = await readLog(session, "nobody").catch((error: Error) => error.message);
    match(String(unknown), /no log of "nobody"; it has: agent, 1-1\/0/);
    const metrics = await first.metrics();
    match(metrics, /^heddle_agent_shards\{state="ready"\} 1$/m);
    match(metrics, /^heddle_agent_session_connected 1$/m);
    match(metrics, /^heddle_agent_commands_total\{command="start_shard",outcome="accepted"\} 1$/m);
    match(metrics, /^heddle_agent_engine_starts_total\{engine="sim",model="demo"\} 1$/m);
    match(metrics, /^heddle_agent_problems\{reason="nvidia_smi_missing"\} 1$/m);
    match(ready.apiKey, /^sk-heddle-replica-[\w-]{43}$/);
    equal(ready.address, `127.0.0.1:${port}`);
    ok(ready.pid !== undefined);
    for (let taken = false; !taken;) {
      const { load } = await session.heartbeat();
      ok(load?.load1m !== undefined && (load.memoryAvailableBytes ?? 0n) > 0n);
      equal(load.shards[0]?.shardId, "1-1/0");
      taken = (load.shards[0]?.memoryBytes ?? 0n) > 1_000_000n;
    }
    match(
      await first.metrics(),
      /^heddle_agent_shard_memory_bytes\{shard="1-1\/0",model="demo"\} \d{7,}$/m,
    );
    await first.stop();

    const second = startAgent(control.url, state);
    const again = await control.session();
    const adopted = again.register.shards[0]?.status;
    equal(adopted && decodeShardState(adopted.state), "ready");
    equal(adopted?.pid, ready.pid);
    equal(adopted?.apiKey, ready.apiKey);
    again.send({
      case: "stopShard",
      value: create(StopShardSchema, {
        revision: encodeRevision({ term: 1, sequence: 2 }),
        shardId: "1-1/0",
        reason: "drained",
      }),
    });
    equal((await again.result()).accepted, true);
    equal((await again.status("stopped")).reason, "drained");
    await second.stop();
  } finally {
    await control.close();
    await Deno.remove(state, { recursive: true });
  }
});

Deno.test("the agent counts a start that follows a failure of the same profile as a restart", async () => {
  const state = await Deno.makeTempDir();
  const control = await startControlFake();
  try {
    const agent = startAgent(control.url, state);
    const session = await control.session();
    start(session, simSpec(freePort(), "1-1/0", ["--no-such-flag"]), 1);
    equal((await session.result()).accepted, true);
    await session.status("failed");
    start(session, simSpec(freePort(), "1-2/0"), 2);
    equal((await session.result()).accepted, true);
    await session.status("ready");
    const metrics = await agent.metrics();
    match(metrics, /^heddle_agent_engine_starts_total\{engine="sim",model="demo"\} 2$/m);
    match(metrics, /^heddle_agent_engine_restarts_total\{engine="sim",model="demo"\} 1$/m);
    match(metrics, /^heddle_agent_shard_failures_total\{engine="sim",reason="[a-z_]+"\} 1$/m);
    const revision = encodeRevision({ term: 1, sequence: 3 });
    session.send({
      case: "stopShard",
      value: create(StopShardSchema, { revision, shardId: "1-2/0", reason: "drained" }),
    });
    await session.status("stopped");
    await agent.stop();
  } finally {
    await control.close();
    await Deno.remove(state, { recursive: true });
  }
});

Deno.test("a port that goes down degrades the shard that has it, and nothing else happens to it", async () => {
  const state = await Deno.makeTempDir();
  const control = await startControlFake({ heartbeatMs: 200 });
  try {
    const adapter = `${state}/sys/class/infiniband/mlx5_0`;
    const port = `${adapter}/ports/1/state`;
    await Deno.mkdir(`${adapter}/ports/1`, { recursive: true });
    await Deno.writeTextFile(`${adapter}/node_type`, "1: CA\n");
    await Deno.writeTextFile(`${adapter}/ports/1/link_layer`, "InfiniBand\n");
    await Deno.writeTextFile(port, "4: ACTIVE\n");
    const agent = startAgent(control.url, state);
    const session = await control.session();
    const hcas = [create(HcaRefSchema, { name: "mlx5_0", port: 1 })];
    start(session, { ...simSpec(freePort()), hcas }, 1);
    equal((await session.result()).accepted, true);
    const { pid } = await session.status("ready");
    await Deno.writeTextFile(port, "1: DOWN\n");
    const degraded = await session.status("degraded");
    equal(degraded.reason, "hca_link_down");
    match(degraded.message, /mlx5_0 port 1 is in state "1: DOWN"/);
    match(await agent.metrics(), /^heddle_agent_shards_degraded\{reason="hca_link_down"\} 1$/m);
    await Deno.writeTextFile(port, "4: ACTIVE\n");
    equal((await session.status("ready")).pid, pid, "it is the same engine");
    const revision = encodeRevision({ term: 1, sequence: 2 });
    session.send({
      case: "stopShard",
      value: create(StopShardSchema, { revision, shardId: "1-1/0", reason: "drained" }),
    });
    await session.status("stopped");
    await agent.stop();
  } finally {
    await control.close();
    await Deno.remove(state, { recursive: true });
  }
});
