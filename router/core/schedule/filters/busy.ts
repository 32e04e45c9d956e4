/** It said itself that it is full. */
import type { Candidate, Wanted } from "../candidate.ts";

export function busy({ busyUntil }: Candidate, _: Wanted, now: number): boolean {
  return now < busyUntil;
}
