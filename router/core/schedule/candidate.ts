/** What scheduling looks at: an endpoint with what this router knows of its present. */
import type { Breaker } from "../fleet/breaker.ts";
import type { Endpoint } from "../fleet/endpoint.ts";

export interface Candidate {
  readonly endpoint: Endpoint;
  /** Requests that this router has there now. */
  readonly inFlight: number;
  /** What the other routers have there, as control last told. */
  readonly othersInFlight: number;
  readonly breaker: Breaker;
  /** It said that it is full; until then (ms) others are asked first. */
  readonly busyUntil: number;
}

/** What a request brings to its scheduling. */
export interface Wanted {
  /** Replica ids that this request has been to already. */
  readonly tried: ReadonlySet<string>;
}
