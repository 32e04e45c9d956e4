/** Scheduling: filter, then score, then pick. Pure; the one random number is an argument. */
import { lastResort } from "../fleet/breaker.ts";
import type { Candidate, Wanted } from "./candidate.ts";
import { rejectionOf, type RejectionReason } from "./filters.ts";
import { scoreAll, type Scored, type Weights } from "./scorers.ts";

export interface Rejection {
  readonly replicaId: string;
  readonly reason: RejectionReason;
}

export interface Picked {
  readonly kind: "picked";
  readonly candidate: Candidate;
  /** Those that were compared, with their scores. */
  readonly compared: readonly Candidate[];
  readonly scored: Scored;
  readonly rejections: readonly Rejection[];
}

export type Pick =
  | Picked
  | { readonly kind: "none"; readonly rejections: readonly Rejection[] };

export interface PickOptions {
  readonly candidates: readonly Candidate[];
  readonly wanted: Wanted;
  readonly weights: Weights;
  /** In [0,1); decides between equals. */
  readonly chance: number;
  readonly now: number;
}

/** Scores closer than this are equal: several routers that see the same must not all take the same. */
const TIE = 0.005;

/**
 * Picks the endpoint for a request: of those that no filter rejects, the highest priority only; of
 * these, the best score; of equals, one by weight. When nothing is left but endpoints that are full,
 * busy, degraded, or short of context, and open breakers, one that still accepts connections is
 * better than a refusal.
 * Never throws: no fit is `none`, with a reason for each candidate.
 */
export function pick(options: PickOptions): Pick {
  const { candidates, wanted, weights, now } = options;
  const rejections: Rejection[] = [];
  const usable: Candidate[] = [];
  for (const candidate of candidates) {
    const reason = rejectionOf(candidate, wanted, now);
    if (reason === undefined) usable.push(candidate);
    else rejections.push({ replicaId: candidate.endpoint.replicaId, reason });
  }
  const left = usable.length > 0 ? usable : resorts(candidates, rejections);
  const compared = highestPriority(left);
  if (compared.length === 0) return { kind: "none", rejections };
  const scored = scoreAll(compared, wanted, weights);
  const candidate = weighted(bestOf(compared, scored.totals), options.chance);
  if (candidate === undefined) return { kind: "none", rejections };
  const there = new Set(compared);
  return {
    kind: "picked",
    candidate,
    compared,
    scored,
    rejections: [
      ...rejections.filter((_, index) => usable.length > 0 || !isAmong(candidates[index], there)),
      ...left.filter((each) => !there.has(each)).map(({ endpoint }) => ({
        replicaId: endpoint.replicaId,
        reason: "lower_priority" as const,
      })),
    ],
  };
}

/** What answers later comes first, then what may not answer, then what most likely does not. */
const RESORTS = ["full", "busy", "degraded", "context_too_short"] as const;

/** Every candidate was rejected, so `rejections` has one for each, in the same order. */
function resorts(
  candidates: readonly Candidate[],
  rejections: readonly Rejection[],
): readonly Candidate[] {
  const rejectedFor = (reason: RejectionReason) =>
    candidates.filter((_, index) => rejections[index]?.reason === reason);
  for (const reason of RESORTS) {
    const rejected = rejectedFor(reason);
    if (rejected.length > 0) return reason === "context_too_short" ? longest(rejected) : rejected;
  }
  return rejectedFor("breaker_open").filter(({ breaker }) => lastResort(breaker));
}

/** The engine itself shall say, in its own words, that a prompt is too long. */
function longest(candidates: readonly Candidate[]): readonly Candidate[] {
  const tokens = ({ endpoint }: Candidate) => endpoint.maxModelLen ?? Infinity;
  const most = Math.max(...candidates.map(tokens));
  return candidates.filter((candidate) => tokens(candidate) === most);
}

function highestPriority(candidates: readonly Candidate[]): readonly Candidate[] {
  let most = -Infinity;
  let all = true;
  for (const { endpoint } of candidates) {
    if (most !== -Infinity && endpoint.priority !== most) all = false;
    most = Math.max(most, endpoint.priority);
  }
  return all ? candidates : candidates.filter(({ endpoint }) => endpoint.priority === most);
}

function bestOf(candidates: readonly Candidate[], totals: readonly number[]) {
  let best = -Infinity;
  for (const total of totals) if (total > best) best = total;
  return candidates.filter((_, index) => (totals[index] ?? 0) >= best - TIE);
}

function weighted(equals: readonly Candidate[], chance: number): Candidate | undefined {
  let left = chance * equals.reduce((sum, { endpoint }) => sum + endpoint.weight, 0);
  for (const candidate of equals) {
    left -= candidate.endpoint.weight;
    if (left < 0) return candidate;
  }
  return equals[0];
}

function isAmong(candidate: Candidate | undefined, set: ReadonlySet<Candidate>): boolean {
  return candidate !== undefined && set.has(candidate);
}
