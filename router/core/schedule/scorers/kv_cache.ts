/** Its KV cache has room: who runs out of it stops requests that are under way. */
import type { Candidate } from "../candidate.ts";

export function kvCache(candidates: readonly Candidate[]): readonly number[] {
  return candidates.map(({ kvUsage }) => kvUsage === undefined ? NaN : 1 - kvUsage);
}
