/** How fast things happen: events per second over the last while, older ones fading. */

export interface Flow {
  readonly weight: number;
  readonly at: number;
  readonly since: number;
}

/** Long enough to see through bursts, short enough to follow a fleet that grows. */
const MEMORY_MS = 20_000;
/** Before so much time has passed, a few events say nothing of a rate. */
const SINCE_MS_MIN = 1_000;

export function noFlow(now: number): Flow {
  return { weight: 0, at: now, since: now };
}

/** One event, or several, at `now`. */
export function flowed(flow: Flow, now: number, count = 1): Flow {
  return { ...flow, weight: flow.weight * fade(now - flow.at) + count, at: now };
}

/** Events per second at `now`. */
export function perSecond(flow: Flow, now: number): number {
  const sinceMs = Math.max(now - flow.since, SINCE_MS_MIN);
  // Of a memory that has just begun, only the part that has passed can be full.
  const fullMs = MEMORY_MS * (1 - fade(sinceMs));
  return flow.weight * fade(now - flow.at) / fullMs * 1_000;
}

function fade(ms: number): number {
  return Math.exp(-Math.max(0, ms) / MEMORY_MS);
}
