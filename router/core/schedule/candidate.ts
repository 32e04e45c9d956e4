/** What scheduling looks at: an endpoint with what this router knows of its present. */
import type { Breaker } from "../fleet/breaker.ts";
import type { Endpoint } from "../fleet/endpoint.ts";
import type { LoadPresent } from "../load/replica_load.ts";

export interface Candidate extends LoadPresent {
  readonly endpoint: Endpoint;
  readonly breaker: Breaker;
  /** It said that it is full; until then (ms) others are asked first. */
  readonly busyUntil: number;
  /** Requests in flight at which it is full. */
  readonly capacity: number;
  /** Tokens of this request's prompt that its cache is thought to have. */
  readonly cachedTokens: number;
  /** The replica's id for rendezvous hashing. */
  readonly key: number;
}

/** What a request brings to its scheduling. */
export interface Wanted {
  /** Replica ids that this request has been to already. */
  readonly tried: ReadonlySet<string>;
  /** As estimated. */
  readonly promptTokens: number;
  /** Prompt and answer, as reserved. */
  readonly tokens: number;
  readonly streamed: boolean;
  /** What tells its conversation from others, in all of its turns; undefined where there is none. */
  readonly conversation: number | undefined;
  /** What its client calls the session, hashed; undefined when it says none. */
  readonly session: number | undefined;
  /** The replica that it must go to; undefined for any. */
  readonly only?: string | undefined;
}

/** Everything in flight there, for each share of the traffic that it is to have. */
export function loadOf({ inFlight, othersInFlight, endpoint }: Candidate): number {
  return (inFlight + othersInFlight) / endpoint.weight;
}

/** When its first token would come, in ms, if the request were sent there now. */
export function firstTokenMs(candidate: Candidate, { promptTokens }: Wanted): number {
  const { backlogTokens, pending, waiting, oldestPendingMs, firstToken } = candidate;
  const mine = Math.max(0, promptTokens - candidate.cachedTokens);
  // What waits in the engine and is not ours has a prompt too; ours is the only measure there is.
  const foreign = Math.max(0, (waiting ?? 0) - pending) * promptTokens;
  const ms = firstToken.constantMs + firstToken.msPerToken * (backlogTokens + foreign + mine);
  // Who keeps another waiting for longer than that is slower than it was.
  return Math.max(ms, oldestPendingMs);
}
