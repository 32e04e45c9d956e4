/** What the agent counts about itself. */
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { ended, type Shard } from "./core/shard/shard.ts";
import type { Status } from "./core/shard/status.ts";
import type { UsageWatch } from "./supervision/usage_watch.ts";
import type { NodeReport } from "./node_report.ts";
import type { Supervisor } from "./supervisor.ts";

const STATES = [
  "preparing",
  "starting",
  "loading",
  "ready",
  "degraded",
  "draining",
  "stopping",
  "stopped",
  "failed",
] as const;

/** A healthy call takes 50 ms to 2 s; the longest deadline is 60 s. */
const NVIDIA_SMI_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 60];

export interface AgentMetrics {
  readonly heartbeats: Counter;
  readonly registrations: Counter;
  /** Calls of nvidia-smi, in seconds. */
  readonly nvidiaSmi: Histogram<"call" | "outcome">;
  /** Counts what has become of a shard: starts, starts after a failure, failures. */
  countStatus(shard: Shard, status: Status): void;
  readonly commands: Counter<"command" | "outcome">;
}

interface Observed {
  readonly supervisor: Supervisor;
  readonly report: NodeReport;
  readonly usage: UsageWatch;
  readonly connected: () => boolean;
}

/** Registers the agent's metrics; what has a present value is read when it is asked for. */
export function agentMetrics(registry: Registry, agent: Observed): AgentMetrics {
  presentValues(registry, agent);
  shardValues(registry, agent);
  const registers = [registry];
  return {
    heartbeats: new Counter({
      name: "heddle_agent_heartbeats_total",
      help: "Heartbeats handed to the session.",
      registers,
    }),
    registrations: new Counter({
      name: "heddle_agent_registrations_total",
      help: "Registrations that a control answered.",
      registers,
    }),
    nvidiaSmi: new Histogram({
      name: "heddle_agent_nvidia_smi_seconds",
      help: "How long calls of nvidia-smi took, by what was asked and whether it answered.",
      labelNames: ["call", "outcome"],
      buckets: NVIDIA_SMI_SECONDS,
      registers,
    }),
    countStatus: statusCounter(registry),
    commands: new Counter({
      name: "heddle_agent_commands_total",
      help: "Commands of control by outcome: accepted, or why not.",
      labelNames: ["command", "outcome"],
      registers,
    }),
  };
}

// Control gives every replica a new name, so that only what is run can tell a start from one again.
function statusCounter(registry: Registry): AgentMetrics["countStatus"] {
  const registers = [registry];
  const labelNames = ["engine", "model"] as const;
  const starts = new Counter({
    name: "heddle_agent_engine_starts_total",
    help: "Engines that were started, by engine and model.",
    labelNames,
    registers,
  });
  const restarts = new Counter({
    name: "heddle_agent_engine_restarts_total",
    help: "Of these, those of a model and profile of which one had failed on this node.",
    labelNames,
    registers,
  });
  const failures = new Counter({
    name: "heddle_agent_shard_failures_total",
    help: "Shards that failed, by engine and reason.",
    labelNames: ["engine", "reason"],
    registers,
  });
  const failed = new Set<string>();
  const begun = new Set<string>();
  return ({ spec }, { state, reason }) => {
    const { engine, model, shardId } = spec;
    const what = JSON.stringify([model, spec.profile, spec.rank]);
    const start = `${shardId} ${spec.attempt}`;
    if (state === "starting" && !begun.has(start)) {
      begun.add(start);
      starts.inc({ engine, model });
      if (failed.delete(what)) restarts.inc({ engine, model });
    }
    if (state === "failed") {
      failures.inc({ engine, reason });
      failed.add(what);
    }
    if (state === "failed" || state === "stopped") begun.delete(start);
  };
}

function presentValues(registry: Registry, agent: Observed): void {
  const registers = [registry];
  new Gauge({
    name: "heddle_agent_shards",
    help: "Shards of this node by state.",
    labelNames: ["state"],
    registers,
    collect() {
      const statuses = agent.supervisor.statuses();
      for (const state of STATES) {
        this.set({ state }, statuses.filter(({ status }) => status.state === state).length);
      }
    },
  });
  new Gauge({
    name: "heddle_agent_session_connected",
    help: "1 while the agent is registered with a control.",
    registers,
    collect() {
      this.set(agent.connected() ? 1 : 0);
    },
  });
  new Gauge({
    name: "heddle_agent_problems",
    help: "Problems of the node and its parts by reason, as last told to control.",
    labelNames: ["reason"],
    registers,
    collect() {
      this.reset();
      for (const reason of agent.report.problemReasons) this.inc({ reason });
    },
  });
  new Gauge({
    name: "heddle_agent_discovery_seconds",
    help: "How long the last look at the hardware took; it waits two seconds at most.",
    registers,
    collect() {
      this.set(agent.report.discoverySeconds);
    },
  });
}

function shardValues(registry: Registry, agent: Observed): void {
  const registers = [registry];
  new Gauge({
    name: "heddle_agent_shards_degraded",
    help: "Degraded shards of this node by reason, such as a lost link or an engine that hangs.",
    labelNames: ["reason"],
    registers,
    collect() {
      this.reset();
      for (const { status } of agent.supervisor.statuses()) {
        if (status.state === "degraded") this.inc({ reason: status.reason });
      }
    },
  });
  new Gauge({
    name: "heddle_agent_shard_cpu_percent",
    help: "CPU that a shard's processes take, in percent of one CPU.",
    labelNames: ["shard", "model"],
    registers,
    collect() {
      this.reset();
      for (const { labels, taken } of takers(agent)) {
        if (taken.cpuPercent !== undefined) this.set(labels, taken.cpuPercent);
      }
    },
  });
  new Gauge({
    name: "heddle_agent_shard_memory_bytes",
    help: "Host memory that a shard's processes take.",
    labelNames: ["shard", "model"],
    registers,
    collect() {
      this.reset();
      for (const { labels, taken } of takers(agent)) {
        if (taken.memoryBytes !== undefined) this.set(labels, taken.memoryBytes);
      }
    },
  });
}

function takers({ supervisor, usage }: Observed) {
  return supervisor.statuses().filter(({ shard }) => !ended(shard.state)).map(({ shard }) => ({
    labels: { shard: shard.spec.shardId, model: shard.spec.model },
    taken: usage.of(shard),
  }));
}
