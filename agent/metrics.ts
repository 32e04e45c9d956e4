/** What the agent counts about itself. */
import { Counter, Gauge, type Registry } from "prom-client";
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

export interface AgentMetrics {
  readonly heartbeats: Counter;
  readonly registrations: Counter;
  readonly failures: Counter<"engine" | "reason">;
  readonly commands: Counter<"command" | "outcome">;
}

interface Observed {
  readonly supervisor: Supervisor;
  readonly report: NodeReport;
  readonly connected: () => boolean;
}

/** Registers the agent's metrics; what has a present value is read when it is asked for. */
export function agentMetrics(registry: Registry, agent: Observed): AgentMetrics {
  presentValues(registry, agent);
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
    failures: new Counter({
      name: "heddle_agent_shard_failures_total",
      help: "Shards that failed, by engine and reason.",
      labelNames: ["engine", "reason"],
      registers,
    }),
    commands: new Counter({
      name: "heddle_agent_commands_total",
      help: "Commands of control by outcome: accepted, or why not.",
      labelNames: ["command", "outcome"],
      registers,
    }),
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
