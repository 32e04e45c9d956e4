/** Which port goes to what, and whether all of them are free. */
import { HeddleError } from "@heddle/proto/error";

/** Ports of one `up`, all on 127.0.0.1. */
export interface Ports {
  readonly openai: number;
  readonly routerAdmin: number;
  readonly controlAgents: number;
  readonly controlAdmin: number;
  readonly controlMetrics: number;
  readonly console: number;
  /** One for each agent, in the order of the nodes. */
  readonly agentMetrics: readonly number[];
  /** Ports that the engines of each agent may use, in the order of the nodes. */
  readonly engines: readonly { readonly first: number; readonly last: number }[];
}

/** A shard of sim or llama.cpp needs one port; 16 leave room for a rendezvous and more. */
export const ENGINE_PORT_BLOCK = 16;
const ENGINE_PORTS_PER_NODE = ENGINE_PORT_BLOCK * 16;

/** Heddle's own ports, or a range that begins at `from`. */
export function layPorts(nodeCount: number, from: number | undefined): Ports {
  const engines = (first: number) =>
    Array.from({ length: nodeCount }, (_, index) => ({
      first: first + index * ENGINE_PORTS_PER_NODE,
      last: first + (index + 1) * ENGINE_PORTS_PER_NODE - 1,
    }));
  if (from === undefined) {
    return {
      openai: 8080,
      routerAdmin: 9091,
      controlAgents: 7443,
      controlAdmin: 9090,
      controlMetrics: 9093,
      console: 9094,
      agentMetrics: Array.from({ length: nodeCount }, (_, i) => i === 0 ? 9092 : 9100 + i),
      engines: engines(20_000),
    };
  }
  return {
    openai: from,
    routerAdmin: from + 1,
    controlAgents: from + 2,
    controlAdmin: from + 3,
    controlMetrics: from + 4,
    console: from + 5,
    agentMetrics: Array.from({ length: nodeCount }, (_, index) => from + 10 + index),
    engines: engines(from + 100),
  };
}

/** Throws `failed_precondition` for the first port that something else holds, saying what to do. */
export function demandFreePorts(ports: Ports): void {
  const wanted: [number, string][] = [
    [ports.openai, "the OpenAI endpoint"],
    [ports.routerAdmin, "the router's metrics"],
    [ports.controlAgents, "control's port for agents and routers"],
    [ports.controlAdmin, "control's admin API"],
    [ports.controlMetrics, "control's metrics"],
    [ports.console, "the console"],
    ...ports.agentMetrics.map((port): [number, string] => [port, "an agent's metrics"]),
  ];
  for (const [port, what] of wanted) {
    try {
      Deno.listen({ hostname: "127.0.0.1", port }).close();
    } catch (error) {
      if (!(error instanceof Deno.errors.AddrInUse)) throw error;
      throw new HeddleError(
        "failed_precondition",
        `Cannot start: port ${port} is in use (wanted for ${what}). Stop what holds it, or move all ports with --ports-from N`,
      );
    }
  }
}
