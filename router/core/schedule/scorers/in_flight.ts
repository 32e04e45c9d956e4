/** Few requests in flight for its weight, so that under load replicas fill in proportion to weights. */
import { type Candidate, loadOf } from "../candidate.ts";
import { relative } from "../relative.ts";
import type { Scorer } from "../scorer.ts";

export const inFlight: Scorer = {
  likes: "few requests in flight",
  weights: { chat: 2, batch: 2, "long-context": 1 },
  score,
};

/** With few requests each one more slows the others down little. */
const REQUESTS = 2;

function score(candidates: readonly Candidate[]): readonly number[] {
  return relative(candidates.map(loadOf), REQUESTS);
}
