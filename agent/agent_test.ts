import { equal, match, ok } from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { create } from "@bufbuild/protobuf";
import { startMetrics } from "@heddle/common/metrics";
import { StartShardSchema, StopShardSchema } from "@heddle/proto/gen/agent";
import { type ShardSpec, ShardSpecSchema } from "@heddle/proto/gen/types";
import { encodeRevision } from "@heddle/proto/revision";
import { decodeShardState } from "@heddle/proto/shard_state";
import { runAgent } from "./agent.ts";
import { configSchema } from "./config.ts";
import { type FakeSession, startControlFake } from "./edge/session/control_fake.ts";
import { freePort } from "./edge/engine/free_port_fake.ts";

const SHIM = fileURLToPath(new URL("../bin/heddle-shim", import.meta.url));
const SIM = fileURLToPath(new URL("../bin/heddle-sim", import.meta.url));

function simSpec(port: number): ShardSpec {
  return create(ShardSpecSchema, {
    shardId: "1-1/0",
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
  stop(): Promise<void>;
}

function startAgent(url: string, state: string, port: number): Running {
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
  void port;
  const stop = new AbortController();
  const metrics = startMetrics("heddle-agent");
  const running = runAgent(
    { config, node: "n1", shim: SHIM, nvidiaSmi: undefined },
    metrics,
    { signal: stop.signal, onReady: () => {} },
  );
  return {
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

Deno.test("the agent starts the simulated engine, is restarted, adopts it and stops it", async () => {
  const state = await Deno.makeTempDir();
  const control = await startControlFake();
  try {
    const port = freePort();
    const first = startAgent(control.url, state, port);
    const session = await control.session();
    equal(session.register.node, "n1");
    start(session, simSpec(port), 1);
    equal((await session.result()).accepted, true);
    const ready = await session.status("ready");
    match(ready.apiKey, /^sk-heddle-replica-[\w-]{43}$/);
    equal(ready.address, `127.0.0.1:${port}`);
    ok(ready.pid !== undefined);
    await first.stop();

    const second = startAgent(control.url, state, port);
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
