/** Its KV cache has room: who runs out of it stops requests that are under way. */
import type { Candidate } from "../candidate.ts";
import type { Scorer } from "../scorer.ts";

export const kvCache: Scorer = {
  likes: "room in the engine's KV cache",
  weights: { chat: 1, batch: 2, "long-context": 3 },
  score,
};

function score(candidates: readonly Candidate[]): readonly number[] {
  return candidates.map(({ kvUsage }) => kvUsage === undefined ? NaN : 1 - kvUsage);
}
