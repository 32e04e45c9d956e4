/** Candidates with honest defaults: idle, healthy, of equal weight, of unknown engine load. */
import { keyOf } from "../affinity/rendezvous.ts";
import { CLOSED } from "../fleet/breaker.ts";
import type { Endpoint } from "../fleet/endpoint.ts";
import type { Candidate, Wanted } from "./candidate.ts";
import type { Weights } from "./scorers.ts";

export function candidate(
  replicaId: string,
  over: Partial<Candidate> & { readonly endpoint?: never } = {},
  endpoint: Partial<Endpoint> = {},
): Candidate {
  return {
    endpoint: {
      replicaId,
      model: "m",
      origin: { secure: false, host: "h", port: 1, basePath: "" },
      node: "n",
      engine: "vllm",
      profile: "p",
      servedName: "m",
      apiKey: "",
      weight: 1,
      priority: 0,
      draining: false,
      degraded: false,
      maxModelLen: undefined,
      ...endpoint,
    },
    inFlight: 0,
    othersInFlight: 0,
    reservedTokens: 0,
    pending: 0,
    backlogTokens: 0,
    oldestPendingMs: 0,
    waiting: undefined,
    standing: undefined,
    kvUsage: undefined,
    firstToken: { constantMs: 50, msPerToken: 0.1 },
    breaker: CLOSED,
    busyUntil: 0,
    capacity: 256,
    cachedTokens: 0,
    key: keyOf(replicaId),
    ...over,
  };
}

export function wanted(over: Partial<Wanted> = {}): Wanted {
  return {
    tried: new Set(),
    promptTokens: 100,
    tokens: 200,
    streamed: true,
    conversation: undefined,
    session: undefined,
    ...over,
  };
}

/** Least requests for its weight, and nothing else. */
export const onlyInFlight: Weights = {
  queue: 0,
  kv_cache: 0,
  in_flight: 1,
  reserved_tokens: 0,
  prefix: 0,
  session: 0,
  latency: 0,
};
