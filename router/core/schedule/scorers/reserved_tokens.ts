/** Few tokens in flight for its weight: ten long prompts are more than ten short ones. */
import type { Candidate } from "../candidate.ts";
import { relative } from "../relative.ts";
import type { Scorer } from "../scorer.ts";

export const reservedTokens: Scorer = {
  likes: "few tokens in flight",
  weights: { chat: 1, batch: 2, "long-context": 3 },
  score,
};

/** A short conversation more or less. */
const TOKENS = 2_048;

function score(candidates: readonly Candidate[]): readonly number[] {
  return relative(
    candidates.map(({ reservedTokens, endpoint }) => reservedTokens / endpoint.weight),
    TOKENS,
  );
}
