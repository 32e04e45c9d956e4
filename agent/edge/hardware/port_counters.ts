/** Reads the error counters of one RDMA port. */

import {
  type CounterReading,
  LINK_COUNTERS,
  parseCounter,
} from "../../core/health/port_counters.ts";
import type { Sysfs } from "./sysfs.ts";

/**
 * The counters, or undefined when the kernel refuses the first that it is asked for: such functions
 * log a complaint at every attempt, so they are not to be asked again.
 */
export async function readPortCounters(
  sysfs: Sysfs,
  hca: string,
  port: number,
): Promise<CounterReading | undefined> {
  const values = new Map<string, number>();
  for (const name of Object.keys(LINK_COUNTERS)) {
    const attribute = await sysfs.attribute(
      `class/infiniband/${hca}/ports/${port}/counters/${name}`,
    );
    if (attribute.kind === "unreadable") return undefined;
    const value = attribute.kind === "text" ? parseCounter(attribute.text) : undefined;
    if (value !== undefined) values.set(name, value);
  }
  return values;
}
