/** What a client is told whose request found no room: how long a wait would be, as far as is known. */
import type { Refusal } from "../request/outcome.ts";
import type { Band } from "./band.ts";

/** What is said when nothing has ended yet that an estimate could be made of. */
const RETRY_AFTER_UNKNOWN_S = 10;

/** Too many wait already. */
export function full(
  model: string,
  band: Band,
  { waiting, estimateMs }: { readonly waiting: number; readonly estimateMs: number | undefined },
): Refusal {
  return {
    reason: "queue_full",
    message: `All replicas of "${model}" are full, and ${waiting} requests of band ${band} ` +
      `wait already${estimateText(estimateMs)}`,
    retryAfterS: retryAfterS(estimateMs),
  };
}

/** It waited for as long as its band may. */
export function expired(
  model: string,
  band: Band,
  { waitedMs, estimateMs }: { readonly waitedMs: number; readonly estimateMs: number | undefined },
): Refusal {
  return {
    reason: "queue_expired",
    message: `All replicas of "${model}" are full: after ${Math.round(waitedMs / 1_000)} s in ` +
      `band ${band} there was no room${estimateText(estimateMs)}`,
    retryAfterS: retryAfterS(estimateMs),
  };
}

function estimateText(estimateMs: number | undefined): string {
  return estimateMs === undefined
    ? ""
    : `; a new request would wait about ${Math.ceil(estimateMs / 1_000)} s`;
}

function retryAfterS(estimateMs: number | undefined): number {
  return estimateMs === undefined
    ? RETRY_AFTER_UNKNOWN_S
    : Math.max(1, Math.ceil(estimateMs / 1_000));
}
