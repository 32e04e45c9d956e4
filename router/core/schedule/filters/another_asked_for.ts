/** The caller asked for one replica, to measure it, and this is another. */
import type { Candidate, Wanted } from "../candidate.ts";

export function anotherAskedFor({ endpoint }: Candidate, { only }: Wanted): boolean {
  return only !== undefined && endpoint.replicaId !== only;
}
