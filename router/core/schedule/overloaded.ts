/** When load decides and not affinity: a replica that is much fuller than the emptiest one. */
import { type Candidate, loadOf } from "./candidate.ts";

/** Both must be exceeded: a few requests are nothing, and among full replicas a few more are not. */
const REQUESTS_MORE = 8;
const TIMES_MORE = 2;

/** Judges candidates against the emptiest of them. */
export function overloaded(candidates: readonly Candidate[]): (candidate: Candidate) => boolean {
  let least = Infinity;
  for (const candidate of candidates) least = Math.min(least, loadOf(candidate));
  const most = Math.max(least + REQUESTS_MORE, least * TIMES_MORE);
  return (candidate) => loadOf(candidate) > most;
}
