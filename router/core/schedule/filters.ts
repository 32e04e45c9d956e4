/**
 * Reasons why an endpoint may not be used for a request. Cheapest first; the first one that applies
 * is told. A new filter is a file and a line here.
 */
import type { Candidate, Wanted } from "./candidate.ts";
import { alreadyTried } from "./filters/already_tried.ts";
import { anotherAskedFor } from "./filters/another_asked_for.ts";
import { breakerOpen } from "./filters/breaker_open.ts";
import { busy } from "./filters/busy.ts";
import { contextTooShort } from "./filters/context_too_short.ts";
import { degraded } from "./filters/degraded.ts";
import { draining } from "./filters/draining.ts";
import { full } from "./filters/full.ts";

/** True when `candidate` must not be used. */
export type Rejects = (candidate: Candidate, wanted: Wanted, now: number) => boolean;

const FILTERS = {
  draining,
  already_tried: alreadyTried,
  another_asked_for: anotherAskedFor,
  breaker_open: breakerOpen,
  context_too_short: contextTooShort,
  busy,
  degraded,
  full,
} as const satisfies Readonly<Record<string, Rejects>>;

/** `lower_priority`: one of a higher priority can be used. */
export type RejectionReason = keyof typeof FILTERS | "lower_priority";

const IN_ORDER = Object.entries(FILTERS);

/** The first reason against `candidate`, or undefined. */
export function rejectionOf(
  candidate: Candidate,
  wanted: Wanted,
  now: number,
): RejectionReason | undefined {
  for (const [reason, rejects] of IN_ORDER) {
    if (rejects(candidate, wanted, now) && isReason(reason)) return reason;
  }
  return undefined;
}

function isReason(reason: string): reason is keyof typeof FILTERS {
  return reason in FILTERS;
}
