/** Where rendezvous hashing puts the client's session; that of nobody else, unless it is overloaded. */
import type { Candidate, Wanted } from "../candidate.ts";
import { overloaded } from "../overloaded.ts";
import { rendezvous } from "../../affinity/rendezvous.ts";
import type { Scorer } from "../scorer.ts";

export const session: Scorer = {
  likes: "where the client's session belongs",
  weights: { chat: 3, batch: 1, "long-context": 2 },
  score,
};

function score(candidates: readonly Candidate[], wanted: Wanted): readonly number[] {
  if (wanted.session === undefined) return candidates.map(() => NaN);
  const full = overloaded(candidates);
  const home = rendezvous(wanted.session, candidates.map(({ key }) => key));
  return candidates.map((candidate, index) => index === home && !full(candidate) ? 1 : 0);
}
