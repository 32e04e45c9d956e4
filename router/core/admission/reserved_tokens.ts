/**
 * What a request may take: its prompt as estimated, and its answer as far as it was bounded. For
 * reservations and for shares of capacity, both of which are settled with what was really used.
 */
import type { ParsedRequest } from "../request/request.ts";

/** An answer's length where the request does not bound it; an engine would allow its whole context. */
const ANSWER_TOKENS_ASSUMED = 512;
/** Answers that are allowed to be longer than this rarely are: a bound is no forecast. */
const ANSWER_TOKENS_MAX = 4_096;

type Demand = Pick<ParsedRequest, "route" | "promptTokensEstimate" | "answerTokensMax">;

/** Prompt and answer together; at least 1, so that nothing is free. */
export function reservedTokens(request: Demand): number {
  return Math.max(1, request.promptTokensEstimate + answerTokens(request));
}

/** The answer's part of it. Nothing for routes that generate nothing. */
function answerTokens({ route, answerTokensMax }: Demand): number {
  if (!route.metered || route.dialect === undefined || route.dialect === "events") return 0;
  return Math.min(answerTokensMax ?? ANSWER_TOKENS_ASSUMED, ANSWER_TOKENS_MAX);
}
