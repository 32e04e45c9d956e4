/** Scheduling: filter, then score, then pick. Pure; the one random number is an argument. */
import { lastResort } from "../fleet/breaker.ts";
import type { Endpoint } from "../fleet/endpoint.ts";
import type { Candidate, Wanted } from "./candidate.ts";
import { rejectionOf, type RejectionReason } from "./filters.ts";
import { totalScore } from "./scores.ts";

export interface Rejection {
  readonly replicaId: string;
  readonly reason: RejectionReason;
}

export type Pick =
  | {
    readonly kind: "picked";
    readonly endpoint: Endpoint;
    readonly score: number;
    readonly rejections: readonly Rejection[];
  }
  | { readonly kind: "none"; readonly rejections: readonly Rejection[] };

export interface PickOptions {
  readonly candidates: readonly Candidate[];
  readonly wanted: Wanted;
  /** In [0,1); decides between equals. */
  readonly chance: number;
  readonly now: number;
}

/**
 * Picks the endpoint for a request: of those that no filter rejects, the highest priority only; of
 * these, the best score; of equals, one by weight. When nothing is left but
 * busy or degraded endpoints and open breakers, one that still accepts connections is better than
 * a refusal.
 * Never throws: no fit is `none`, with a reason for each candidate.
 */
export function pick(options: PickOptions): Pick {
  const { candidates, wanted, now } = options;
  const rejections: Rejection[] = [];
  const usable: Candidate[] = [];
  for (const candidate of candidates) {
    const reason = rejectionOf(candidate, wanted, now);
    if (reason === undefined) usable.push(candidate);
    else rejections.push({ replicaId: candidate.endpoint.replicaId, reason });
  }
  const best = bestOf(usable.length > 0 ? usable : resorts(candidates, rejections));
  if (best === undefined) return { kind: "none", rejections };
  const endpoint = weighted(best.equals, options.chance);
  return {
    kind: "picked",
    endpoint,
    score: best.score,
    rejections: rejections.filter(({ replicaId }) => replicaId !== endpoint.replicaId),
  };
}

function resorts(
  candidates: readonly Candidate[],
  rejections: readonly Rejection[],
): readonly Candidate[] {
  const rejectedFor = (reason: RejectionReason) =>
    candidates.filter((_, index) => rejections[index]?.reason === reason);
  // What is full answers later, what is degraded perhaps never, what is broken most likely not.
  for (const reason of ["busy", "degraded"] as const) {
    const rejected = rejectedFor(reason);
    if (rejected.length > 0) return rejected;
  }
  return rejectedFor("breaker_open").filter(({ breaker }) => lastResort(breaker));
}

interface Best {
  readonly score: number;
  readonly equals: readonly [Endpoint, ...Endpoint[]];
}

function bestOf(candidates: readonly Candidate[]): Best | undefined {
  const priority = candidates.reduce((most, c) => Math.max(most, c.endpoint.priority), -Infinity);
  let best: { score: number; equals: [Endpoint, ...Endpoint[]] } | undefined;
  for (const candidate of candidates) {
    if (candidate.endpoint.priority !== priority) continue;
    const score = totalScore(candidate);
    if (best === undefined || score > best.score) best = { score, equals: [candidate.endpoint] };
    else if (score === best.score) best.equals.push(candidate.endpoint);
  }
  return best;
}

function weighted(equals: readonly [Endpoint, ...Endpoint[]], chance: number): Endpoint {
  let left = chance * equals.reduce((sum, endpoint) => sum + endpoint.weight, 0);
  for (const endpoint of equals) {
    left -= endpoint.weight;
    if (left < 0) return endpoint;
  }
  return equals[0];
}
