/** What a try at a replica used: in the engine's words, or as far as the router saw it. */
import type { ParsedRequest } from "./request.ts";
import type { Usage } from "../usage.ts";

/** What the engine did for a request, as far as it can be told. */
export interface Work {
  readonly usage: Usage | undefined;
  /** Lower bound of the generated tokens when the engine does not say. */
  readonly contentEvents: number;
  /** It has begun its answer, so it has read the prompt. */
  readonly accepted: boolean;
}

export const NO_WORK: Work = { usage: undefined, contentEvents: 0, accepted: false };

export interface AttemptUsage {
  /** Undefined when it did nothing, as far as can be told. */
  readonly usage: Usage | undefined;
  readonly estimated: boolean;
}

/**
 * An answer that is not streamed shows nothing before its end. A replica that had such a request for
 * so long has read its prompt, unless it is so full that it should not have got it.
 */
const PRESUMED_ACCEPTED_MS = 1_000;

export interface AttemptSeen {
  readonly work: Work | undefined;
  /** The client left before the end. */
  readonly left: boolean;
  readonly engineMs: number;
  /** Of the prompt, estimated. */
  readonly promptTokens: number;
}

/** An engine's zero is a zero. What the engine never accepted, as in its queue, used nothing. */
export function usageOfAttempt(
  { route, stream }: Pick<ParsedRequest, "route" | "stream">,
  { work, left, engineMs, promptTokens }: AttemptSeen,
): AttemptUsage {
  if (work === undefined || !route.metered) return { usage: undefined, estimated: false };
  if (work.usage !== undefined) return { usage: work.usage, estimated: false };
  const accepted = work.accepted || work.contentEvents > 0 ||
    left && !stream && engineMs >= PRESUMED_ACCEPTED_MS;
  if (!accepted) return { usage: undefined, estimated: false };
  return { usage: { promptTokens, completionTokens: work.contentEvents }, estimated: true };
}
