import { deepEqual, equal, match, ok } from "node:assert/strict";
import type { ShardSpec } from "../core/shard/shard.ts";
import { aSpec } from "../core/shard/shard_fake.ts";
import { adapterOf, ENGINE_NAMES } from "./adapters.ts";
import { engineEnvironment } from "./environment.ts";
import type { Built, LaunchInput } from "./engine.ts";

const KEY = "sk-heddle-replica-key";

function build(
  engine: string,
  spec: Partial<ShardSpec>,
  changes: Partial<LaunchInput> = {},
): Built {
  const adapter = adapterOf(engine);
  if (adapter === undefined) throw new Error(`no adapter for ${engine}`);
  return adapter.build({
    spec: aSpec({ engine, source: "/models/llama", model: "chat", ...spec }),
    engine: { name: engine, path: `/opt/heddle/engines/${engine}/bin/${engine}`, version: "1" },
    address: "10.0.0.1",
    apiKey: (spec.rank ?? 0) === 0 ? KEY : "",
    modelDirs: ["/var/lib/heddle/models", "/mnt/models"],
    ...changes,
  });
}

/** The only process, as a shell would be given it, an argument pair to a line. */
function golden(built: Built): string {
  ok(built.kind === "processes");
  equal(built.processes.length, 1);
  const [process] = built.processes;
  const argv = process?.argv.join(" ").replaceAll(/ (?=--?[a-z])/g, "\n  ") ?? "";
  const env = Object.entries(process?.env ?? {}).sort(([a], [b]) => a < b ? -1 : 1)
    .map(([name, value]) => `${name}=${value}\n`).join("");
  return `${env}${argv}\n`;
}

Deno.test("vLLM on one node", () => {
  equal(
    golden(build("vllm", { tp: 2, args: ["--max-model-len", "8192"] })),
    `DO_NOT_TRACK=1
VLLM_API_KEY=sk-heddle-replica-key
VLLM_ENGINE_READY_TIMEOUT_S=600
VLLM_HOST_IP=10.0.0.1
VLLM_NO_USAGE_STATS=1
VLLM_PORT=20016
/opt/heddle/engines/vllm/bin/vllm serve /models/llama
  --served-model-name chat
  --host 10.0.0.1
  --port 20000
  --shutdown-timeout 5
  --tensor-parallel-size 2
  --pipeline-parallel-size 1
  --max-model-len 8192
`,
  );
});

Deno.test("vLLM on two nodes: the same command, the second headless, no pinned internal port", () => {
  const two = { tp: 8, pp: 2, shardCount: 2, leaderAddress: "10.0.0.1", leaderPort: 20_256 };
  equal(
    golden(build("vllm", { ...two, portFirst: 20_256 })),
    `DO_NOT_TRACK=1
VLLM_API_KEY=sk-heddle-replica-key
VLLM_ENGINE_READY_TIMEOUT_S=600
VLLM_HOST_IP=10.0.0.1
VLLM_NO_USAGE_STATS=1
/opt/heddle/engines/vllm/bin/vllm serve /models/llama
  --served-model-name chat
  --host 10.0.0.1
  --port 20256
  --shutdown-timeout 5
  --tensor-parallel-size 8
  --pipeline-parallel-size 2
  --nnodes 2
  --node-rank 0
  --master-addr 10.0.0.1
  --master-port 20257
`,
  );
  const worker = golden(build("vllm", { ...two, rank: 1 }, { address: "10.0.0.2" }));
  match(worker, /^VLLM_HOST_IP=10\.0\.0\.2$/m, "each node has its own");
  match(
    worker,
    /--node-rank 1\n {2}--master-addr 10\.0\.0\.1\n {2}--master-port 20257\n {2}--headless\n$/,
  );
  ok(!worker.includes(KEY), "it serves no HTTP, so it needs no key");
});

Deno.test("vLLM spreads data-parallel copies over nodes, and refuses what does not divide", () => {
  const spread = { tp: 2, dp: 4, shardCount: 2 };
  match(
    golden(build("vllm", { ...spread, rank: 1 })),
    /--data-parallel-size 4\n {2}--data-parallel-size-local 2\n {2}--data-parallel-address 10\.0\.0\.1\n {2}--data-parallel-rpc-port 20002\n {2}--headless\n {2}--data-parallel-start-rank 2\n$/,
  );
  match(golden(build("vllm", { tp: 2, dp: 2 })), /--data-parallel-size 2\n$/);
  const uneven = build("vllm", { ...spread, dp: 3 });
  ok(uneven.kind === "refused");
  equal(uneven.reason, "parallel_layout_unsupported");
});

Deno.test("vLLM drains by itself where its version can, within half of the time to stop", () => {
  const drain = (version: string, stopTimeoutMs: number, engine = "vllm") => {
    const built = build(engine, { stopTimeoutMs }, {
      engine: { name: engine, path: `/opt/${engine}`, version },
    });
    return /--shutdown-timeout (\d+)/.exec(golden(built))?.[1];
  };
  equal(drain("0.33.0", 8_000), "4");
  equal(drain("0.34.1+cu130", 60_000), "10");
  equal(drain("0.33.0", 0), "10", "of what an agent goes by where nothing is said");
  equal(drain("0.33.0", 1_000), undefined);
  for (const version of ["0.32.9", "0.11.0", "0.1.dev1+g12ab", "unknown"]) {
    equal(drain(version, 60_000), undefined, version);
  }
  equal(drain("0.1.0", 60_000, "sim"), "10");
});

Deno.test("an engine that is a module of a Python is started by that Python", () => {
  const engine = { name: "vllm", path: "/venv/bin/python3.12", version: "1" };
  match(
    golden(build("vllm", {}, { engine })),
    /^\/venv\/bin\/python3\.12\n {2}-m vllm\.entrypoints\.cli\.main serve /m,
  );
  deepEqual(adapterOf("sglang")?.versionArgs("/venv/bin/python"), [
    "-c",
    "import sglang; print(sglang.__version__)",
  ]);
});

Deno.test("SGLang on two nodes, its hidden ports inside the shard's block", () => {
  const two = { tp: 16, shardCount: 2, leaderAddress: "fd00::1", leaderPort: 20_000 };
  equal(
    golden(build("sglang", two)),
    `SGLANG_HOST_IP=10.0.0.1
/opt/heddle/engines/sglang/bin/sglang serve
  --model-path /models/llama
  --served-model-name chat
  --host 10.0.0.1
  --port 20000
  --nccl-port 20002
  --tp-size 16
  --nnodes 2
  --node-rank 0
  --dist-init-addr [fd00::1]:20004
  --enable-metrics
  --api-key sk-heddle-replica-key
`,
  );
  const small = build("sglang", { portCount: 64 });
  ok(small.kind === "refused");
  match(small.message, /64 ports: it needs 246/);
});

Deno.test("llama.cpp with an explicit port and context, its key in the environment", () => {
  const built = build("llamacpp", {
    source: "tiny/model.gguf",
    args: ["-c", "512"],
    gpus: [{ index: 0, uuid: "GPU-a" }],
  });
  equal(
    golden(built),
    `LLAMA_API_KEY=sk-heddle-replica-key
/opt/heddle/engines/llamacpp/bin/llamacpp
  -m /var/lib/heddle/models/tiny/model.gguf
  --alias chat
  --host 10.0.0.1
  --port 20000
  -ngl 999
  --metrics
  --offline
  -c 512
`,
  );
  equal(built.kind === "processes" && built.modelFile, "/var/lib/heddle/models/tiny/model.gguf");
  match(
    golden(build("llamacpp", { source: "/m/a.GGUF" })),
    /-m \/m\/a\.GGUF[^]*-c 4096\n {2}-ngl 0\n/,
  );
});

Deno.test("llama.cpp refuses what it cannot serve, with the reason", () => {
  const cases: [Partial<ShardSpec>, string][] = [
    [{ source: "org/model" }, "model_source_unsupported"],
    [{ source: "../../etc/x.gguf" }, "model_source_unsupported"],
    [{ source: "a.gguf", shardCount: 2 }, "parallel_layout_unsupported"],
    [{ source: "a.gguf", launchMode: "ray" }, "launch_mode_unsupported"],
  ];
  for (const [spec, reason] of cases) {
    const built = build("llamacpp", spec);
    equal(built.kind === "refused" && built.reason, reason);
  }
});

Deno.test("the simulated engine is started as vLLM would be", () => {
  const path = "/opt/heddle/bin/heddle-sim";
  const engine = { name: "sim", path, version: "1" };
  const simulated = golden(build("sim", { tp: 2, pp: 2, shardCount: 2, rank: 1 }, { engine }));
  const real = golden(build("vllm", { tp: 2, pp: 2, shardCount: 2, rank: 1 }));
  equal(simulated, real.replace("/opt/heddle/engines/vllm/bin/vllm", path));
});

Deno.test("no engine but SGLang has its key among its arguments", () => {
  for (const engine of ENGINE_NAMES) {
    const built = build(engine, { source: "/m/a.gguf" });
    ok(built.kind === "processes");
    const shown = built.processes.some(({ argv }) => argv.some((arg) => arg.includes(KEY)));
    equal(shown, engine === "sglang", engine);
  }
});

const NODE = {
  home: "/var/lib/heddle/agent/home",
  managementInterface: "eth0",
  engineEnv: { LD_LIBRARY_PATH: "/usr/local/cuda/lib64" },
  ofEngine: { HF_HOME: "/fast/hf" },
};
const ENGINE = { path: "/venv/bin/vllm", adapter: { VLLM_API_KEY: KEY } };

Deno.test("an engine gets what Heddle gives it and nothing else", () => {
  const spec = aSpec({
    gpus: [{ index: 2, uuid: "GPU-c" }, { index: 3, uuid: "GPU-d" }],
    hcas: [{ name: "mlx5_0", port: 1 }, { name: "mlx5_1", port: 2 }],
    env: { HF_HOME: "/mine" },
  });
  deepEqual(engineEnvironment(spec, NODE, ENGINE), {
    PATH: "/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    HOME: "/var/lib/heddle/agent/home",
    HF_HOME: "/mine",
    LD_LIBRARY_PATH: "/usr/local/cuda/lib64",
    HF_HUB_OFFLINE: "1",
    CUDA_DEVICE_ORDER: "PCI_BUS_ID",
    CUDA_VISIBLE_DEVICES: "2,3",
    NCCL_SOCKET_IFNAME: "=eth0",
    GLOO_SOCKET_IFNAME: "eth0",
    TP_SOCKET_IFNAME: "eth0",
    NCCL_IB_HCA: "=mlx5_0:1,mlx5_1:2",
    UCX_NET_DEVICES: "mlx5_0:1,mlx5_1:2",
    NVSHMEM_HCA_LIST: "mlx5_0:1,mlx5_1:2",
    VLLM_API_KEY: KEY,
  });
});

Deno.test("a GID index is given only where placement found one for all", () => {
  const hcas = [{ name: "mlx5_0", port: 1 }];
  const of = (index?: number) =>
    engineEnvironment(
      aSpec({ hcas, ...(index === undefined ? {} : { roceGidIndex: index }) }),
      NODE,
      ENGINE,
    );
  equal(of(3)["NCCL_IB_GID_INDEX"], "3");
  equal(of(0)["UCX_IB_GID_INDEX"], "0");
  ok(!Object.keys(of()).some((name) => name.includes("GID")));
  const none = engineEnvironment(aSpec({ roceGidIndex: 3 }), NODE, ENGINE);
  ok(!("NCCL_IB_GID_INDEX" in none), "without an adapter there is nothing to index");
});

Deno.test("without a fabric InfiniBand is off: an empty list would mean every adapter", () => {
  const env = engineEnvironment(aSpec(), NODE, ENGINE);
  equal(env["NCCL_IB_DISABLE"], "1");
  ok(!("NCCL_IB_HCA" in env));
  equal(env["CUDA_VISIBLE_DEVICES"], "", "no GPU was given, so none is seen");
});

Deno.test("behind NAT no interface is named: an empty name would mean all of them", () => {
  const env = engineEnvironment(aSpec(), { ...NODE, managementInterface: "" }, ENGINE);
  ok(!("NCCL_SOCKET_IFNAME" in env) && !("GLOO_SOCKET_IFNAME" in env));
});
