/**
 * One line in the log for each request to an engine that did not go well. Those that did are told
 * at level debug only: a line costs as much time as all of the router's own decisions, and metrics
 * count them anyway.
 */
import type { Logger } from "@heddle/common/log";
import type { OutcomeReason } from "../../core/request/outcome.ts";
import type { UsageRecord } from "../../core/request/usage_record.ts";

const FAULTS: ReadonlySet<OutcomeReason> = new Set([
  "engine_failed",
  "engine_rejects_router",
  "engine_timeout",
  "engine_unreachable",
  "internal_error",
  "stream_broken",
]);

export function logRequest(log: Logger, record: UsageRecord): void {
  if (record.outcome === "ok" && !log.isEnabledFor("debug")) return;
  const { usage, durationMs, firstContentMs, ...rest } = record;
  const properties = {
    ...rest,
    promptTokens: usage?.promptTokens,
    completionTokens: usage?.completionTokens,
    cachedTokens: usage?.cachedTokens,
    durationMs: Math.round(durationMs),
    firstContentMs: firstContentMs === undefined ? undefined : Math.round(firstContentMs),
  };
  if (FAULTS.has(record.outcome)) log.warning("Request", properties);
  else if (record.outcome === "ok") log.debug("Request", properties);
  else log.info("Request", properties);
}
