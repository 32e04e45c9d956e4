/**
 * A circuit breaker for one endpoint. Faults open it; saturation never does, because an engine that
 * says "busy" works. While it is open nothing is sent; after its cooldown one request at a time
 * tries (half-open), and its success closes it.
 *
 * A failed connect is the strongest sign there is and opens at once. Other faults have to come in a
 * row, since one bad request can make one error on a healthy engine.
 */

export type Breaker =
  | { readonly kind: "closed"; readonly faults: number }
  | {
    readonly kind: "open";
    readonly cause: "connect" | "fault";
    readonly until: number;
    readonly opens: number;
  }
  | { readonly kind: "half_open"; readonly opens: number; readonly probing: boolean };

export type BreakerState = Breaker["kind"];

/** `connect`: nothing listens or nothing answers the dial. `fault`: it answered, and wrongly. */
export type BreakerEvent = "success" | "connect" | "fault";

export const CLOSED: Breaker = { kind: "closed", faults: 0 };

/** Faults in a row before an endpoint that still accepts connections is taken out. */
const FAULTS_MAX = 3;
/** First cooldown: short, since an engine that was restarted is back in its place soon. */
const COOLDOWN_FIRST_MS = 1_000;
/** Longest cooldown: an endpoint that is gone costs one failed probe in so long. */
const COOLDOWN_MAX_MS = 30_000;

/** An engine may ask for a longer cooldown, but not for being forgotten. */
const RETRY_AFTER_MAX_MS = 120_000;

/** The breaker as it stands at `now`: an open one whose cooldown has passed is half-open. */
export function settle(breaker: Breaker, now: number): Breaker {
  if (breaker.kind !== "open" || now < breaker.until) return breaker;
  return { kind: "half_open", opens: breaker.opens, probing: false };
}

/** Whether a request may be sent at `now`. */
export function allows(breaker: Breaker, now: number): boolean {
  const current = settle(breaker, now);
  return current.kind === "closed" || (current.kind === "half_open" && !current.probing);
}

/** What sending a request changes: in half-open it is the probe. */
export function sent(breaker: Breaker, now: number): Breaker {
  const current = settle(breaker, now);
  return current.kind === "half_open" ? { ...current, probing: true } : current;
}

/**
 * What an answer changes. `retryAfterMs` is what the engine asked for together with the fault, 0
 * when it asked for nothing; the later of it and the cooldown wins.
 */
export function after(
  breaker: Breaker,
  event: { readonly kind: BreakerEvent; readonly retryAfterMs: number },
  now: number,
): Breaker {
  if (event.kind === "success") return CLOSED;
  const current = settle(breaker, now);
  if (current.kind === "closed") {
    const faults = current.faults + 1;
    if (event.kind === "fault" && faults < FAULTS_MAX) return { kind: "closed", faults };
    return opened(1, event.kind, event.retryAfterMs, now);
  }
  // Answers to requests that were sent before it opened say nothing new.
  if (current.kind === "open") return current;
  return opened(current.opens + 1, event.kind, event.retryAfterMs, now);
}

/** A probe that ended without an answer, such as one whose client left: another may try. */
export function withdrawn(breaker: Breaker): Breaker {
  return breaker.kind === "half_open" ? { ...breaker, probing: false } : breaker;
}

/**
 * Whether it may be tried when nothing else is left: it accepts connections, so that its faults may
 * have been about the requests. One that refused the dial is not worth a client's time.
 */
export function lastResort(breaker: Breaker): boolean {
  return breaker.kind !== "open" || breaker.cause === "fault";
}

function opened(
  opens: number,
  cause: "connect" | "fault",
  retryAfterMs: number,
  now: number,
): Breaker {
  const cooldownMs = Math.min(COOLDOWN_FIRST_MS * 2 ** Math.min(opens - 1, 30), COOLDOWN_MAX_MS);
  const waitMs = Math.max(cooldownMs, Math.min(retryAfterMs, RETRY_AFTER_MAX_MS));
  return { kind: "open", cause, until: now + waitMs, opens };
}
