/**
 * Its cache has the beginning of the prompt. A conversation that nobody has begins where rendezvous
 * hashing puts it: there all routers look for it, and no two of them warm two replicas for it.
 * Affinity ends where it would overload: a replica much fuller than the emptiest has none.
 */
import type { Candidate, Wanted } from "../candidate.ts";
import { overloaded } from "../overloaded.ts";
import { rendezvous } from "../../affinity/rendezvous.ts";
import type { Scorer } from "../scorer.ts";

export const prefix: Scorer = {
  likes: "the beginning of the prompt in the engine's cache",
  weights: { chat: 6, batch: 3, "long-context": 5 },
  score,
};

/** What a replica is worth that only ought to have it: enough among equals, and less than any load. */
const SEED = 0.04;
/** Of a short prompt little can be saved, wherever it goes. */
const TOKENS = 128;

function score(candidates: readonly Candidate[], wanted: Wanted): readonly number[] {
  const { conversation, promptTokens } = wanted;
  if (conversation === undefined) return candidates.map(() => NaN);
  const full = overloaded(candidates);
  const home = rendezvous(conversation, candidates.map(({ key }) => key));
  return candidates.map((candidate, index) => {
    if (full(candidate)) return 0;
    const share = candidate.cachedTokens / (promptTokens + TOKENS);
    return Math.min(1, (1 - SEED) * share + (index === home ? SEED : 0));
  });
}
