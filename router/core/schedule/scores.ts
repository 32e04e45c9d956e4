/** How good an endpoint is for a request, in [0,1], one function per point of view. */
import type { Candidate } from "./candidate.ts";

export interface Scorer {
  readonly name: string;
  /** Share in the total. */
  readonly weight: number;
  readonly score: (candidate: Candidate) => number;
}

/** A new scorer is one function and one line here. */
const SCORERS: readonly Scorer[] = [
  { name: "in_flight", weight: 1, score: inFlight },
];

/** The weighted mean of all scorers, in [0,1]. */
export function totalScore(candidate: Candidate, scorers: readonly Scorer[] = SCORERS): number {
  let sum = 0;
  let weights = 0;
  for (const { weight, score } of scorers) {
    sum += weight * score(candidate);
    weights += weight;
  }
  return weights === 0 ? 0 : sum / weights;
}

// Falls with the requests per weight, so that under load endpoints fill in proportion to weights.
function inFlight({ endpoint, inFlight, othersInFlight }: Candidate): number {
  return 1 / (1 + (inFlight + othersInFlight) / endpoint.weight);
}
