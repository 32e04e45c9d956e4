/** The prompt is longer than what it takes. */
import type { Candidate, Wanted } from "../candidate.ts";

/**
 * The prompt's length is estimated from its bytes: ordinary text has about four to a token, but
 * tables, code and whitespace may have more. Only what is too long by any count is kept away.
 */
const CERTAIN_SHARE = 0.6;

export function contextTooShort({ endpoint }: Candidate, { promptTokens }: Wanted): boolean {
  const { maxModelLen } = endpoint;
  return maxModelLen !== undefined && promptTokens * CERTAIN_SHARE > maxModelLen;
}
