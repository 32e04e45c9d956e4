/** It finishes what it has and is then stopped. */
import type { Candidate } from "../candidate.ts";

export function draining({ endpoint }: Candidate): boolean {
  return endpoint.draining;
}
