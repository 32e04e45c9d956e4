/**
 * How many requests a replica runs at once, learnt from its own words. While requests wait inside an
 * engine it runs as many as it can, so that number is its capacity; while none waits and the router
 * fills what it believes, there may be more. Before the first sign of being full it grows fast.
 */

export interface Capacity {
  /** Requests in flight at which the replica counts as full. */
  readonly requests: number;
  /** It was full once, so that `requests` was measured. */
  readonly found: boolean;
  /** Times in a row that the engine was heard to be full. */
  readonly full: number;
}

/** What an engine said of itself, and what the routers had there at that moment. */
export interface Heard {
  readonly running: number | undefined;
  readonly waiting: number | undefined;
  readonly inFlight: number;
}

/** Where it begins: every current engine takes as many, and it doubles in seconds. */
export const CAPACITY_FIRST: Capacity = { requests: 64, found: false, full: 0 };

/** An engine lets a few wait between any two of its steps: that is not being full. */
const WAITING_MIN = 2;
const WAITING_SHARE = 0.1;
/** One moment may be a burst; twice in a row, a scrape apart, is a state. */
const FULL_TIMES = 2;
/** Some more than it ran: it would idle between two requests otherwise. */
const ROOM = 1.05;
const GROWTH_FAST = 1.5;
const GROWTH = 1.05;
/** It may grow only while it is nearly used up: otherwise nothing shows that there is more. */
const USED_SHARE = 0.8;
const REQUESTS_MIN = 4;
const REQUESTS_MAX = 4_096;

/** What hearing from the engine changes. An engine that does not say leaves it as it is. */
export function heard(capacity: Capacity, { running, waiting, inFlight }: Heard): Capacity {
  if (running === undefined || waiting === undefined) return capacity;
  if (waiting >= Math.max(WAITING_MIN, running * WAITING_SHARE)) {
    const full = capacity.full + 1;
    return full < FULL_TIMES
      ? { ...capacity, full }
      : { requests: bounded(running * ROOM), found: true, full };
  }
  const used = inFlight >= capacity.requests * USED_SHARE;
  const growth = capacity.found ? GROWTH : GROWTH_FAST;
  return {
    ...capacity,
    full: 0,
    requests: used ? bounded(capacity.requests * growth + 1) : capacity.requests,
  };
}

/** The engine refused a request because it is full: it has as much as it takes. */
export function refused(capacity: Capacity, inFlight: number): Capacity {
  const requests = bounded(Math.min(capacity.requests, inFlight));
  return { ...capacity, requests, found: true };
}

function bounded(requests: number): number {
  return Math.min(Math.max(requests, REQUESTS_MIN), REQUESTS_MAX);
}
