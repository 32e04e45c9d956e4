/** What an operator promises of a model, and whether one request kept it. For control's scaling. */
import type { UsageRecord } from "../request/usage_record.ts";

/** Of the 99th percentile, in ms. */
export interface Slo {
  /** From a request's arrival to the first content that its client gets. */
  readonly ttftMs?: number;
  /** Per token after the first. */
  readonly tpotMs?: number;
}

export type Timed = Pick<
  UsageRecord,
  "outcome" | "stream" | "durationMs" | "firstContentMs" | "usage"
>;

/**
 * Times are as the client saw them, so that waiting in the queue counts, and so does a client that
 * reads slowly. An answer that is no stream tells only of both times together, and is judged when
 * both are promised. What failed otherwise than by being late is a failure and no miss.
 */
export function missedSlo(slo: Slo, request: Timed): boolean {
  const { outcome, stream, durationMs, firstContentMs, usage } = request;
  const { ttftMs, tpotMs } = slo;
  if (ttftMs === undefined && tpotMs === undefined) return false;
  if (outcome === "engine_saturated" || outcome === "engine_timeout") return true;
  if (outcome !== "ok" && outcome !== "client_closed") return false;
  const later = Math.max(0, (usage?.completionTokens ?? 0) - 1);
  if (!stream) {
    return outcome === "ok" && ttftMs !== undefined && tpotMs !== undefined &&
      durationMs > ttftMs + later * tpotMs;
  }
  if (ttftMs !== undefined && (firstContentMs ?? durationMs) > ttftMs) return true;
  return tpotMs !== undefined && firstContentMs !== undefined && later > 0 &&
    durationMs - firstContentMs > later * tpotMs;
}
