/** It has as many requests as it can run at once: another would wait inside it. */
import type { Candidate } from "../candidate.ts";

export function full({ inFlight, othersInFlight, capacity }: Candidate): boolean {
  return inFlight + othersInFlight >= capacity;
}
