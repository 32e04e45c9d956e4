/** Candidates with honest defaults: idle, healthy, of equal weight. */
import { CLOSED } from "../fleet/breaker.ts";
import type { Endpoint } from "../fleet/endpoint.ts";
import type { Candidate } from "./candidate.ts";

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
    breaker: CLOSED,
    busyUntil: 0,
    ...over,
  };
}
