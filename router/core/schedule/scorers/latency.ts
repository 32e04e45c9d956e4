/** Its first token would come soon: what is learnt of its speed, times what it has to compute first. */
import { type Candidate, firstTokenMs, type Wanted } from "../candidate.ts";
import { relative } from "../relative.ts";
import type { Scorer } from "../scorer.ts";

export const latency: Scorer = {
  likes: "a first token that comes soon",
  weights: { chat: 3, batch: 1, "long-context": 3 },
  score,
};

/** Nobody sees so little. */
const MS = 20;

function score(candidates: readonly Candidate[], wanted: Wanted): readonly number[] {
  return relative(candidates.map((candidate) => firstTokenMs(candidate, wanted)), MS);
}
