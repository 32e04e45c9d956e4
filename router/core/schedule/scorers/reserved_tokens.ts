/** Few tokens in flight for its weight: ten long prompts are more than ten short ones. */
import type { Candidate } from "../candidate.ts";
import { relative } from "../relative.ts";

/** A short conversation more or less. */
const TOKENS = 2_048;

export function reservedTokens(candidates: readonly Candidate[]): readonly number[] {
  return relative(
    candidates.map(({ reservedTokens, endpoint }) => reservedTokens / endpoint.weight),
    TOKENS,
  );
}
