/** Few requests wait inside the engine: as it said, and what was sent there since. */
import type { Candidate } from "../candidate.ts";
import { relative } from "../relative.ts";

/** A request more or less is a matter of one step. */
const REQUESTS = 4;

export function queue(candidates: readonly Candidate[]): readonly number[] {
  return relative(candidates.map(({ waiting }) => waiting ?? NaN), REQUESTS);
}
