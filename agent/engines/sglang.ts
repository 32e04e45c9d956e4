/**
 * SGLang. It takes its key as an argument only, so that every user of the node can read it in the
 * list of processes: keep nodes to yourself, or use another engine. It opens ports at fixed
 * distances from those it is given (233 above the HTTP port and above the rendezvous), so both lie
 * low in the shard's block, and the port that it would choose by chance is pinned.
 */
import type { ShardSpec } from "../core/shard/shard.ts";
import {
  type Built,
  type EngineAdapter,
  type FlagsSince,
  gpusPerStage,
  isPython,
  type LaunchInput,
  type PortUse,
  refused,
  tooOld,
} from "./engine.ts";

const RENDEZVOUS_PORT = 4;
const NCCL_PORT = 2;
/** From the HTTP port; then this many follow it, or the rendezvous. */
const SCHEDULER_PORT = 233;
const DERIVED_PORTS = 6;
/** HTTP port + 233 … 239 must still be the shard's own. */
const PORTS_MIN = 246;

/** As the packages' own lists of flags have it; see flag_lists_test.ts. */
const SINCE: FlagsSince = {
  "--nccl-port": { version: "0.4.9", need: "keeping NCCL inside the shard's ports" },
  "serve": { version: "0.5.5", need: "a program of its own instead of its Python" },
};

const PYTHON_VERSION = ["-c", "import sglang; print(sglang.__version__)"] as const;

export const sglang: EngineAdapter = {
  name: "sglang",
  versionArgs: (path) => isPython(path) ? PYTHON_VERSION : ["version"],
  build,
  load: {
    running: ["sglang:num_running_reqs"],
    waiting: ["sglang:num_queue_reqs"],
    kvUsage: ["sglang:token_usage"],
    progress: [
      "sglang:generation_tokens_total",
      "sglang:prompt_tokens_total",
      "sglang:realtime_tokens_total",
    ],
  },
};

function build({ spec, engine, address, apiKey }: LaunchInput): Built {
  if (spec.launchMode !== "" && spec.launchMode !== "mp") {
    return refused(
      "launch_mode_unsupported",
      `Cannot start sglang with launch_mode ${spec.launchMode}: it has its own, leave it out`,
    );
  }
  if (spec.portCount < PORTS_MIN) {
    return refused(
      "parallel_layout_unsupported",
      `Cannot start sglang in a block of ${spec.portCount} ports: it needs ${PORTS_MIN}; ` +
        "raise engine_ports.block",
    );
  }
  const lacking = isPython(engine.path) ? undefined : tooOld(engine, ["serve"], SINCE);
  if (lacking !== undefined) return lacking;
  const command = isPython(engine.path) ? ["-m", "sglang.launch_server"] : ["serve"];
  const dp = Math.max(1, spec.dp);
  // With one copy to a group of GPUs, SGLang counts data-parallel groups inside tp.
  const args = [
    ...["--model-path", spec.source, "--served-model-name", spec.model],
    ...["--host", address, "--port", String(spec.portFirst)],
    ...["--nccl-port", String(spec.portFirst + NCCL_PORT)],
    ...["--tp-size", String(gpusPerStage(spec) / Math.max(1, spec.pp))],
    ...(spec.pp > 1 ? ["--pp-size", String(spec.pp)] : []),
    ...(dp > 1 ? ["--dp-size", String(dp)] : []),
    ...(spec.shardCount === 1 ? [] : [
      ...["--nnodes", String(spec.shardCount), "--node-rank", String(spec.rank)],
      ...["--dist-init-addr", hostPort(spec.leaderAddress, spec.leaderPort + RENDEZVOUS_PORT)],
    ]),
    "--enable-metrics",
    ...(apiKey === "" ? [] : ["--api-key", apiKey]),
  ];
  const unknown = tooOld(engine, args, SINCE);
  if (unknown !== undefined) return unknown;
  return {
    kind: "processes",
    processes: [{
      name: "server",
      argv: [engine.path, ...command, ...args, ...spec.args],
      env: { SGLANG_HOST_IP: address },
    }],
    ports: portsOf(spec),
  };
}

function portsOf(spec: ShardSpec): readonly PortUse[] {
  const { rank, shardCount, portFirst, args } = spec;
  // Other ranks answer there too, to health checks alone.
  const http: PortUse = { port: portFirst, use: "HTTP" };
  if (rank > 0) return [http];
  const internal = (use: string, first: number, count = 1) =>
    Array.from(
      { length: count },
      (_, index): PortUse => ({ port: first + index, use, internal: true }),
    );
  const dpAttention = args.some((arg) =>
    /^--(?:enable-dp-attention|attn-dp-size)(?:=|$)/.test(arg)
  );
  const rendezvous = spec.leaderPort + RENDEZVOUS_PORT;
  return [
    http,
    ...internal("NCCL", portFirst + NCCL_PORT),
    ...(shardCount > 1 ? internal("the rendezvous of its ranks", rendezvous) : []),
    // One more each time: the schedulers, the tokenizers, calls between them, and what they count.
    ...(!dpAttention
      ? []
      : shardCount > 1
      ? internal("its schedulers", rendezvous + 1, DERIVED_PORTS)
      : internal("its schedulers", portFirst + SCHEDULER_PORT, DERIVED_PORTS + 1)),
  ];
}

function hostPort(host: string, port: number): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
