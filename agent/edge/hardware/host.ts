/** Facts about the machine itself, each read on its own, so that one refusal costs one fact. */

import type { HostFacts } from "../../core/host/host_facts.ts";
import type { NodeProblem } from "../../core/problem.ts";
import { reasonOf } from "../reason_of.ts";

/** How busy the machine is; what the system does not tell is absent. */
export interface HostLoad {
  /** Processes that ran or waited, on average over the last minute. */
  readonly load1m?: number;
  readonly memoryAvailableBytes?: number;
}

/** Never throws. */
export function readHostLoad(): HostLoad {
  const [load1m] = attempt(() => Deno.loadavg()) ?? [];
  const available = attempt(() => Deno.systemMemoryInfo().available) ?? 0;
  return {
    ...(load1m === undefined ? {} : { load1m }),
    ...(available > 0 ? { memoryAvailableBytes: available } : {}),
  };
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    // Not granted: it is for people, and not worth a problem of its own.
    return undefined;
  }
}

/** Reads the facts, anew each time: memory can grow. Never throws. */
export function readHost(): HostFacts {
  const problems: NodeProblem[] = [];
  const read = <T>(what: string, permission: string, get: () => T): T | undefined => {
    try {
      return get();
    } catch (error) {
      problems.push({
        reason: "host_facts_denied",
        detail: `Cannot read the ${what}: ${reasonOf(error)}`,
        remedy:
          `Start the agent with --allow-sys=${permission}; the permission set "agent" has it.`,
      });
      return undefined;
    }
  };
  const release = read("kernel release", "osRelease", () => Deno.osRelease());
  const memory = read("memory size", "systemMemoryInfo", () => Deno.systemMemoryInfo().total) ?? 0;
  return {
    hostname: read("host name", "hostname", () => Deno.hostname()) ?? "",
    os: release === undefined ? Deno.build.os : `${Deno.build.os} ${release}`,
    arch: Deno.build.arch,
    cpuCount: navigator.hardwareConcurrency,
    memoryBytes: memory > 0 ? memory : undefined,
    interfaces: read(
      "network interfaces",
      "networkInterfaces",
      () =>
        Deno.networkInterfaces().map(({ name, address, netmask }) => ({ name, address, netmask })),
    ),
    problems,
  };
}
