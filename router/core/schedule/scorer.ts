/** A point of view from which endpoints are compared, and the kinds of request that weigh them. */
import type { Candidate, Wanted } from "./candidate.ts";

export const ROUTING_PROFILES = ["chat", "batch", "long-context"] as const;

export type RoutingProfile = (typeof ROUTING_PROFILES)[number];

export interface Scorer {
  /** What it prefers, in words for the configuration. */
  readonly likes: string;
  /** What it counts where the configuration does not say. */
  readonly weights: Readonly<Record<RoutingProfile, number>>;
  /** A number in [0,1] for each candidate, 1 for the best, NaN where it does not know. */
  readonly score: (candidates: readonly Candidate[], wanted: Wanted) => readonly number[];
}
