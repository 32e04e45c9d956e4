/** Its first token would come soon: what is learnt of its speed, times what it has to compute first. */
import { type Candidate, firstTokenMs, type Wanted } from "../candidate.ts";
import { relative } from "../relative.ts";

/** Nobody sees so little. */
const MS = 20;

export function latency(candidates: readonly Candidate[], wanted: Wanted): readonly number[] {
  return relative(candidates.map((candidate) => firstTokenMs(candidate, wanted)), MS);
}
