/**
 * How many requests a replica runs at once, learnt from its own words. While requests wait inside an
 * engine it runs as many as it can, so that number is its capacity; while none waits and the router
 * fills what it believes, there may be more. Before the first sign of being full it grows fast.
 *
 * A few requests always wait in a busy engine, between two of its steps, and that is not being full.
 * So it takes two looks in a row, a scrape apart, and a reason for the wait: the engine runs the
 * same number both times, or its cache is full, or it does not get through its prompts.
 */

export interface Capacity {
  /** Requests in flight at which the replica counts as full. */
  readonly requests: number;
  /** What it ran when it was full; undefined while it never was. */
  readonly limit: number | undefined;
  /** How much more is tried next, as a share. */
  readonly step: number;
  /** Looks until it is tried again whether there is more. */
  readonly settled: number;
  readonly last: Heard | undefined;
}

/** What an engine said of itself, and what the routers had there at that moment. */
export interface Heard {
  readonly running: number | undefined;
  readonly waiting: number | undefined;
  readonly kvUsage: number | undefined;
  readonly inFlight: number;
}

/** More is tried gently: what is too much waits inside the engine, where no band goes first. */
const STEP_FIRST = 0.02;
/** Where nothing was found yet, and where one try after the other succeeds. */
const STEP_MAX = 0.5;

/** Where it begins: every current engine takes as many, and it doubles in seconds. */
export const CAPACITY_FIRST: Capacity = {
  requests: 64,
  limit: undefined,
  step: STEP_MAX,
  settled: 0,
  last: undefined,
};

const WAITING_MIN = 2;
/** Numbers of running requests that are the same: one ends while another has not begun. */
const SAME_SHARE = 0.03;
const KV_FULL = 0.9;
/** So many waiting for those that run are prompts that come faster than they are read. */
const WAITING_SHARE = 0.25;
/** What one look may take away: the engine may have been held up by something else. */
const SHRINKS_TO = 0.8;
/** Looks between a limit and the next try. */
const LOOKS_SETTLED = 60;
/** It may grow only while it is nearly used up: otherwise nothing shows that there is more. */
const USED_SHARE = 0.8;
/** A limit that was found is gone beyond only from the limit itself. */
const USED_SHARE_FOUND = 0.97;
const REQUESTS_MIN = 4;
const REQUESTS_MAX = 4_096;

/** What hearing from the engine changes. An engine that does not say leaves it as it is. */
export function heard(capacity: Capacity, now: Heard): Capacity {
  const { requests, limit, step, settled, last } = capacity;
  const running = fullAt(now, last) ?? triedInVain(capacity, now);
  if (running !== undefined) {
    const least = limit === undefined ? 0 : requests * SHRINKS_TO;
    return settledAt(Math.min(requests, Math.max(running, least)), now);
  }
  if (settled > 0) return { ...capacity, settled: settled - 1, last: now };
  const used = now.inFlight >= requests * (limit === undefined ? USED_SHARE : USED_SHARE_FOUND);
  // One that waits between two steps does not show that there is no more; two may.
  const more = limit === undefined || requests <= limit || (now.running ?? 0) > limit;
  if (!used || !more || now.waiting === undefined || now.waiting >= WAITING_MIN) {
    return { ...capacity, last: now };
  }
  return {
    ...capacity,
    requests: bounded(requests * (1 + step) + 1),
    step: Math.min(step * 2, STEP_MAX),
    last: now,
  };
}

/** The engine refused a request because it is full: it has as much as it takes. */
export function refused(capacity: Capacity, inFlight: number): Capacity {
  return settledAt(Math.min(capacity.requests, inFlight), capacity.last);
}

function settledAt(requests: number, last: Heard | undefined): Capacity {
  const limit = bounded(requests);
  return { requests: limit, limit, step: STEP_FIRST, settled: LOOKS_SETTLED, last };
}

/** More was tried and is there, but no more of it runs: the known limit, which holds. */
function triedInVain(
  { requests, limit }: Capacity,
  { running, waiting, inFlight }: Heard,
): number | undefined {
  if (limit === undefined || requests <= limit || running === undefined) return undefined;
  if (running > limit * (1 + SAME_SHARE / 2)) return undefined;
  return (waiting ?? 0) >= WAITING_MIN || inFlight >= Math.floor(requests) ? limit : undefined;
}

/** How many the engine runs when it is full; undefined when it is not. */
function fullAt(now: Heard, last: Heard | undefined): number | undefined {
  if (now.running === undefined || last?.running === undefined) return undefined;
  const waiting = Math.min(now.waiting ?? 0, last.waiting ?? 0);
  if (waiting < WAITING_MIN) return undefined;
  const same = Math.abs(now.running - last.running) <= now.running * SAME_SHARE;
  const cacheFull = Math.min(now.kvUsage ?? 0, last.kvUsage ?? 0) >= KV_FULL;
  const behind = waiting >= Math.max(now.running, last.running) * WAITING_SHARE;
  return same || cacheFull || behind ? now.running : undefined;
}

function bounded(requests: number): number {
  return Math.min(Math.max(requests, REQUESTS_MIN), REQUESTS_MAX);
}
