/**
 * What a control makes of the store's answers. It trusts its own clock only, from before it sent a
 * claim, less a margin: an answer that took long is worth less. Between the end of that and the next
 * answer it does not know whether it leads, and then it acts on nothing.
 */
import type { ClaimAnswer, Leader } from "./claim.ts";

/** Milliseconds of a clock that never stands still while the store's runs; see lease_clock.ts. */
export type LeaseMs = number;

export type Election =
  | {
    readonly kind: "standing_by";
    /** Who holds the lease, as far as the store has said. */
    readonly leader: Leader | undefined;
    readonly nextClaimAt: LeaseMs;
  }
  | {
    readonly kind: "leading";
    readonly epoch: number;
    readonly term: number;
    /** From then on it is not known who leads, until an answer comes. */
    readonly sureUntil: LeaseMs;
    readonly nextClaimAt: LeaseMs;
  };

/** The holder claims this often within one lease, so that one lost answer costs nothing. */
const CLAIMS_PER_LEASE = 4;

/** Share of the lease that is not trusted: two clocks may run apart, and a pass takes a moment. */
const MARGIN_SHARE = 0.1;
const MARGIN_MS_MIN = 500;

/**
 * After a claim that got no answer. The holder asks sooner: when a store comes back after the lease
 * has run out, the one whose fleet is connected should be the first to have it.
 */
const HOLDER_RETRY_MS = 500;
const STANDBY_RETRY_MS = 2_000;

/** An ended lease is claimed this much after its end, so that the claim is not too early. */
const AFTER_END_MS = 20;

export function startElection(now: LeaseMs): Election {
  return { kind: "standing_by", leader: undefined, nextClaimAt: now };
}

/** True while this control may act: nobody else can have been told that it leads. */
export function sure(election: Election, now: LeaseMs): boolean {
  return election.kind === "leading" && now < election.sureUntil;
}

/** The store answered a claim that was sent at `sentAt`. A new epoch is a new time of leading. */
export function answered(
  claim: { readonly sentAt: LeaseMs; readonly leaseMs: number },
  answer: ClaimAnswer,
): Election {
  const { sentAt, leaseMs } = claim;
  switch (answer.kind) {
    case "granted":
      return {
        kind: "leading",
        epoch: answer.epoch,
        term: answer.term,
        sureUntil: sentAt + answer.validMs - marginMs(leaseMs),
        nextClaimAt: sentAt + leaseMs / CLAIMS_PER_LEASE,
      };
    case "held":
      // Often enough to notice soon that the holder has given it back.
      return {
        kind: "standing_by",
        leader: answer.by,
        nextClaimAt: sentAt +
          Math.min(answer.remainingMs + AFTER_END_MS, leaseMs / CLAIMS_PER_LEASE),
      };
  }
}

/** No answer came: what was known holds until it runs out, and the claim is sent again. */
export function unanswered(election: Election, now: LeaseMs): Election {
  const retryMs = election.kind === "leading" ? HOLDER_RETRY_MS : STANDBY_RETRY_MS;
  return { ...election, nextClaimAt: now + retryMs };
}

/** How much earlier than the store the holder takes its lease to end. */
function marginMs(leaseMs: number): number {
  return Math.max(MARGIN_MS_MIN, leaseMs * MARGIN_SHARE);
}
