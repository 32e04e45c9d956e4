/** This request has been there already. */
import type { Candidate, Wanted } from "../candidate.ts";

export function alreadyTried({ endpoint }: Candidate, { tried }: Wanted): boolean {
  return tried.has(endpoint.replicaId);
}
