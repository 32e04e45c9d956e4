/** GPUs that are gone and whose place in the order another one has taken. */

import { countOf } from "../nvidia/nvidia_csv.ts";
import type { GpuReadings } from "./readings.ts";

/**
 * UUIDs of known GPUs that the driver does not list now and whose index it gives to another. They
 * are told as missing: two GPUs with one index would be one too many for whoever goes by index.
 */
export function displacedGpus({ identity, known }: GpuReadings): ReadonlySet<string> {
  if (identity.kind !== "answered") return new Set();
  const { rows } = identity.value;
  const taken = new Set([...rows.values()].map((row) => countOf(row, "index")));
  return new Set(
    [...known].filter(([uuid, row]) => !rows.has(uuid) && taken.has(countOf(row, "index")))
      .map(([uuid]) => uuid),
  );
}
