/** Reasons why an endpoint may not be used at all. Cheapest first; the first one that applies counts. */
import { allows } from "../fleet/breaker.ts";
import type { Candidate, Wanted } from "./candidate.ts";

export type RejectionReason =
  | "draining"
  | "already_tried"
  | "breaker_open"
  | "busy"
  | "degraded";

/** Says why `candidate` must not be used, or undefined when it may. */
type Filter = (candidate: Candidate, wanted: Wanted, now: number) => RejectionReason | undefined;

/** Order matters only for which reason is told. A new filter is one function and one line here. */
const FILTERS: readonly Filter[] = [draining, alreadyTried, breakerOpen, busy, degraded];

/** The first reason against `candidate`, or undefined. */
export function rejectionOf(
  candidate: Candidate,
  wanted: Wanted,
  now: number,
): RejectionReason | undefined {
  for (const filter of FILTERS) {
    const reason = filter(candidate, wanted, now);
    if (reason !== undefined) return reason;
  }
  return undefined;
}

function draining({ endpoint }: Candidate): RejectionReason | undefined {
  return endpoint.draining ? "draining" : undefined;
}

function alreadyTried({ endpoint }: Candidate, { tried }: Wanted): RejectionReason | undefined {
  return tried.has(endpoint.replicaId) ? "already_tried" : undefined;
}

function breakerOpen(candidate: Candidate, _: Wanted, now: number): RejectionReason | undefined {
  return allows(candidate.breaker, now) ? undefined : "breaker_open";
}

function busy({ busyUntil }: Candidate, _: Wanted, now: number): RejectionReason | undefined {
  return now < busyUntil ? "busy" : undefined;
}

function degraded({ endpoint }: Candidate): RejectionReason | undefined {
  return endpoint.degraded ? "degraded" : undefined;
}
