/** Few requests wait inside the engine: as it said, and what was sent there since. */
import type { Candidate } from "../candidate.ts";
import { relative } from "../relative.ts";
import type { Scorer } from "../scorer.ts";

export const queue: Scorer = {
  likes: "few requests waiting inside the engine",
  weights: { chat: 1, batch: 2, "long-context": 1 },
  score,
};

/** A request more or less is a matter of one step. */
const REQUESTS = 4;

function score(candidates: readonly Candidate[]): readonly number[] {
  return relative(candidates.map(({ waiting }) => waiting ?? NaN), REQUESTS);
}
