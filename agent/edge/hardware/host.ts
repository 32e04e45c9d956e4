/** Facts about the machine itself, each read on its own, so that one refusal costs one fact. */

import type { NodeProblem } from "../../core/problem.ts";
import {
  type InterfaceAddress,
  managementInterface,
} from "../../core/host/management_interface.ts";
import { reasonOf } from "../reason_of.ts";

export interface HostFacts {
  readonly hostname: string;
  /** System and kernel, for example `linux 6.8.0-45-generic`. */
  readonly os: string;
  readonly arch: string;
  readonly cpuCount: number;
  /** Absent when the system does not say. */
  readonly memoryBytes: number | undefined;
  /** Empty when no interface holds the management address. */
  readonly managementInterface: string;
  readonly problems: readonly NodeProblem[];
}

/** Reads the facts. Never throws: what cannot be read is empty and told in `problems`. */
export function readHost(managementAddress: string): HostFacts {
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
  const hostname = read("host name", "hostname", () => Deno.hostname()) ?? "";
  const release = read("kernel release", "osRelease", () => Deno.osRelease());
  const memoryBytes = readMemoryBytes();
  if (memoryBytes === undefined) {
    read("memory size", "systemMemoryInfo", () => Deno.systemMemoryInfo());
  }
  const interfaces = read("network interfaces", "networkInterfaces", () => networkInterfaces());
  const held = interfaces === undefined
    ? undefined
    : managementInterface(managementAddress, interfaces);
  if (interfaces !== undefined && held === undefined) {
    problems.push(addressNotLocal(managementAddress, interfaces));
  }
  return {
    hostname,
    os: release === undefined ? Deno.build.os : `${Deno.build.os} ${release}`,
    arch: Deno.build.arch,
    cpuCount: navigator.hardwareConcurrency,
    memoryBytes,
    managementInterface: held ?? "",
    problems,
  };
}

/** Total memory in bytes, or undefined when unknown. Read anew each time: a VM can grow. */
export function readMemoryBytes(): number | undefined {
  try {
    const { total } = Deno.systemMemoryInfo();
    return total > 0 ? total : undefined;
  } catch {
    return undefined; // readHost() says why, once, with the permission it takes
  }
}

/** Whether this is Windows' subsystem for Linux, by its kernel's name. Unreadable counts as no. */
export function runsUnderWindows(): boolean {
  try {
    return /microsoft/i.test(Deno.osRelease());
  } catch {
    return false;
  }
}

function networkInterfaces(): InterfaceAddress[] {
  return Deno.networkInterfaces().map(({ name, address, netmask }) => ({ name, address, netmask }));
}

function addressNotLocal(address: string, interfaces: readonly InterfaceAddress[]): NodeProblem {
  const seen = interfaces.map((each) => `${each.address} (${each.name})`).join(", ");
  return {
    reason: "management_address_not_local",
    detail: `No interface of this node holds its management address ${address}; it has ${seen}.`,
    remedy: "Set the node's address to one that it holds; behind NAT, set advertise_address apart.",
  };
}
