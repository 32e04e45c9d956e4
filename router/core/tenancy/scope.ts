/** Something that has limits: an organisation, a team, a project, or a key. */

export type ScopeKind = "organisation" | "team" | "project" | "key";

export interface Scope {
  readonly id: string;
  readonly kind: ScopeKind;
  readonly name: string;
  readonly limits: Limits;
  readonly budget: Budget | undefined;
}

/** What is undefined is not limited here. */
export interface Limits {
  readonly requestsPerMinute: number | undefined;
  readonly tokensPerMinute: number | undefined;
  readonly concurrentRequests: number | undefined;
}

/** Amounts in millionths of a unit. */
export interface Budget {
  readonly limitMicro: number;
  readonly period: "day" | "month" | "for_ever";
  /** By all routers, when control said so. */
  readonly spentMicro: number;
  /** Control found it used up. */
  readonly exhausted: boolean;
  /** When the period ends, in ms of the router's monotonic clock; Infinity: never. */
  readonly refillsAt: number;
}
