/** Few requests in flight for its weight, so that under load replicas fill in proportion to weights. */
import { type Candidate, loadOf } from "../candidate.ts";
import { relative } from "../relative.ts";

/** With few requests each one more slows the others down little. */
const REQUESTS = 2;

export function inFlight(candidates: readonly Candidate[]): readonly number[] {
  return relative(candidates.map(loadOf), REQUESTS);
}
