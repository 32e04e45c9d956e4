/**
 * vLLM. Across nodes it runs its own multiprocessing executor: the same command everywhere, and
 * every rank but the first headless. Its key goes by environment; its port scan starts inside the
 * shard's block, except across nodes, where pinning it makes ranks collide.
 */
import type { ShardSpec } from "../core/shard/shard.ts";
import { STOP_TIMEOUT_MS } from "../core/shard/timing.ts";
import { isAtLeast } from "../core/version_order.ts";
import {
  type Built,
  type EngineAdapter,
  type Environment,
  type FlagsSince,
  gpusPerStage,
  httpPort,
  isPython,
  type LaunchInput,
  type PortUse,
  refused,
  tooOld,
} from "./engine.ts";
import { rayProcesses } from "./ray.ts";

/** Where in a shard's block of ports each listener is; rank 0's block is known to all ranks. */
const MASTER_PORT = 1;
const DATA_PARALLEL_PORT = 2;
const INTERNAL_PORTS = 16;

export const vllm: EngineAdapter = {
  name: "vllm",
  versionArgs: (path) => isPython(path) ? [...PYTHON_MODULE, "--version"] : ["--version"],
  build: buildVllm,
  load: {
    running: ["vllm:num_requests_running"],
    waiting: ["vllm:num_requests_waiting"],
    kvUsage: ["vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"],
    progress: [
      "vllm:generation_tokens_total",
      "vllm:prompt_tokens_total",
      // Counts the steps, also those of a prompt that is worked off in pieces.
      "vllm:iteration_tokens_total_count",
    ],
  },
};

const OWN_NODES = { version: "0.11.1", need: "more than one node without launch_mode ray" };
const COPIES = { version: "0.9.0", need: "copies on more than one node" };

/** As the packages' own lists of flags have it; see flag_lists_test.ts. */
const SINCE: FlagsSince = {
  "--nnodes": OWN_NODES,
  "--data-parallel-size-local": COPIES,
  "--data-parallel-backend": { version: "0.9.1", need: "copies with launch_mode ray" },
};

/** Without it the engine cuts what it has when it is told to end. It can be started without. */
const DRAINS_SINCE = "0.33.0";
/** Control waits for requests before an engine is told to end: these are the few that came since. */
const DRAIN_S_MAX = 10;

const PYTHON_MODULE = ["-m", "vllm.entrypoints.cli.main"] as const;

/** Command lines of vLLM and of what takes vLLM's flags. */
export function buildVllm(input: LaunchInput): Built {
  const { spec, engine } = input;
  const ray = spec.launchMode === "ray";
  if (spec.launchMode !== "" && spec.launchMode !== "mp" && !ray) {
    return refused(
      "launch_mode_unsupported",
      `Cannot start ${engine.name} with launch_mode ${spec.launchMode}: this agent knows mp and ray`,
    );
  }
  const parallel = ray ? rayArgs(spec) : parallelArgs(spec);
  if (typeof parallel === "string") return refused("parallel_layout_unsupported", parallel);
  // What only takes its flags is of this Heddle's own version.
  const lacking = engine.name === "vllm" ? tooOld(engine, parallel, SINCE) : undefined;
  if (lacking !== undefined) return lacking;
  const prefix = isPython(engine.path) ? PYTHON_MODULE : [];
  const argv = [
    engine.path,
    ...prefix,
    "serve",
    spec.source,
    ...["--served-model-name", spec.model],
    ...["--host", input.address, "--port", String(spec.portFirst)],
    ...drainArgs(input),
    ...parallel,
    ...spec.args,
  ];
  const env = environment(input);
  if (ray) return rayProcesses(input, { argv, env });
  return { kind: "processes", processes: [{ name: "server", argv, env }], ports: portsOf(spec) };
}

// At most half of the time that it has to end, so that the rest of it is not cut short.
function drainArgs({ spec, engine }: LaunchInput): readonly string[] {
  if (engine.name === "vllm" && !isAtLeast(engine.version, DRAINS_SINCE)) return [];
  const stopS = (spec.stopTimeoutMs || STOP_TIMEOUT_MS) / 1_000;
  const drainS = Math.min(DRAIN_S_MAX, Math.floor(stopS / 2));
  return drainS < 1 ? [] : ["--shutdown-timeout", String(drainS)];
}

// Where it begins to look for a free port by itself is no port that it needs.
function portsOf(spec: ShardSpec): readonly PortUse[] {
  if (spec.rank > 0 || spec.shardCount === 1) return httpPort(spec);
  const offset = spec.dp > 1 ? DATA_PARALLEL_PORT : MASTER_PORT;
  return [
    ...httpPort(spec),
    { port: spec.leaderPort + offset, use: "the rendezvous of its ranks", internal: true },
  ];
}

function environment({ spec, address, apiKey }: LaunchInput): Environment {
  return {
    ...(apiKey === "" ? {} : { VLLM_API_KEY: apiKey }),
    VLLM_HOST_IP: address,
    VLLM_NO_USAGE_STATS: "1",
    DO_NOT_TRACK: "1",
    // Ranks that are headless report their readiness to nobody; the leader must wait for weights.
    VLLM_ENGINE_READY_TIMEOUT_S: String(Math.max(600, Math.ceil(spec.startupTimeoutMs / 1_000))),
    ...(spec.launchMode === "ray" && spec.dp > 1 && gpusPerStage(spec) > spec.gpus.length
      ? { VLLM_RAY_DP_PACK_STRATEGY: "span" }
      : {}),
    ...(spec.shardCount === 1 && spec.portCount > INTERNAL_PORTS
      ? { VLLM_PORT: String(spec.portFirst + INTERNAL_PORTS) }
      : {}),
  };
}

// Ray knows the nodes, so that none is named. Copies that lie on several nodes each must be allowed to.
function rayArgs(spec: ShardSpec): readonly string[] {
  const dp = Math.max(1, spec.dp);
  return [
    ...["--tensor-parallel-size", String(Math.max(1, spec.tp))],
    ...["--pipeline-parallel-size", String(Math.max(1, spec.pp))],
    ...["--distributed-executor-backend", "ray"],
    ...(dp === 1 ? [] : ["--data-parallel-size", String(dp), "--data-parallel-backend", "ray"]),
  ];
}

// A text says why the layout cannot be run.
function parallelArgs(spec: ShardSpec): readonly string[] | string {
  const size = gpusPerStage(spec);
  const dp = Math.max(1, spec.dp);
  const within = [
    ...["--tensor-parallel-size", String(Math.max(1, spec.tp))],
    ...["--pipeline-parallel-size", String(Math.max(1, spec.pp))],
  ];
  if (dp === 1) {
    if (spec.shardCount === 1) return within;
    return [
      ...within,
      ...["--nnodes", String(spec.shardCount), "--node-rank", String(spec.rank)],
      ...["--master-addr", spec.leaderAddress],
      ...["--master-port", String(spec.leaderPort + MASTER_PORT)],
      ...(spec.rank === 0 ? [] : ["--headless"]),
    ];
  }
  if (spec.shardCount === 1) return [...within, "--data-parallel-size", String(dp)];
  if (dp % spec.shardCount !== 0) {
    return `Cannot run dp ${dp} on ${spec.shardCount} nodes: each node must hold as many whole ` +
      `copies (tp × pp = ${size} GPUs) as the others`;
  }
  const local = dp / spec.shardCount;
  return [
    ...within,
    ...["--data-parallel-size", String(dp), "--data-parallel-size-local", String(local)],
    ...["--data-parallel-address", spec.leaderAddress],
    ...["--data-parallel-rpc-port", String(spec.leaderPort + DATA_PARALLEL_PORT)],
    ...(spec.rank === 0
      ? []
      : ["--headless", "--data-parallel-start-rank", String(spec.rank * local)]),
  ];
}
