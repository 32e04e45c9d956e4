/** What is known of the machine itself. */

import type { NodeProblem } from "../problem.ts";
import type { InterfaceAddress } from "./management_interface.ts";

export interface HostFacts {
  /** Empty when unknown. */
  readonly hostname: string;
  /** System and kernel, for example `linux 6.8.0-45-generic`. */
  readonly os: string;
  readonly arch: string;
  readonly cpuCount: number;
  /** Undefined when the system does not say. */
  readonly memoryBytes: number | undefined;
  /** Undefined when they cannot be read. */
  readonly interfaces: readonly InterfaceAddress[] | undefined;
  /** What could not be read, and why. */
  readonly problems: readonly NodeProblem[];
}

/** Whether this is Windows' subsystem for Linux, by its kernel's name. */
export function runsUnderWindows(facts: HostFacts): boolean {
  return /microsoft/i.test(facts.os);
}

/** Addresses by interface. */
export function addressesOf(facts: HostFacts): ReadonlyMap<string, readonly string[]> {
  const addresses = new Map<string, string[]>();
  for (const { name, address } of facts.interfaces ?? []) {
    addresses.set(name, [...addresses.get(name) ?? [], address]);
  }
  return addresses;
}
