/** When to claim. Until control has answered once it is asked often; then at a third of the lease. */

/** Between two tries before the first answer, and at most between two after a failed renewal, in ms. */
const TRY_MS = 5_000;
/** What a control could answer that makes no sense must not make a hot loop. */
const RENEW_MS_MIN = 500;

export interface Lease {
  /** When it was last asked; undefined: never. */
  readonly askedAt: number | undefined;
  /** Of the last answer; undefined before the first. */
  readonly leaseMs: number | undefined;
  /** The last try was answered. */
  readonly answered: boolean;
}

export const NO_LEASE: Lease = { askedAt: undefined, leaseMs: undefined, answered: false };

/** After an answer; the next renewal is by what this one says, whatever earlier ones said. */
export function renewed(now: number, leaseMs: number): Lease {
  return { askedAt: now, leaseMs, answered: true };
}

/** After a try that was not answered. */
export function unanswered(lease: Lease, now: number): Lease {
  return { ...lease, askedAt: now, answered: false };
}

/** When control is to be asked next; at once before the first try. */
export function nextClaimAt({ askedAt, leaseMs, answered }: Lease): number {
  if (askedAt === undefined) return -Infinity;
  if (leaseMs === undefined) return askedAt + TRY_MS;
  const third = Math.max(RENEW_MS_MIN, leaseMs / 3);
  return askedAt + (answered ? third : Math.min(TRY_MS, third));
}
