/** It failed lately, and its cooldown is not over. */
import { allows } from "../../fleet/breaker.ts";
import type { Candidate, Wanted } from "../candidate.ts";

export function breakerOpen({ breaker }: Candidate, _: Wanted, now: number): boolean {
  return !allows(breaker, now);
}
