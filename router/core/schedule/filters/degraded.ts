/** Its agent doubts it. */
import type { Candidate } from "../candidate.ts";

export function degraded({ endpoint }: Candidate): boolean {
  return endpoint.degraded;
}
