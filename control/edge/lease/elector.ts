/**
 * Claims the lease for as long as control runs, and says when leading begins and ends. What to make
 * of the store's answers is decided in core/lease/.
 */
import { errorText, HeddleError } from "@heddle/proto/error";
import { logger } from "@heddle/common/log";
import { delay } from "@heddle/common/task";
import type { Claim, ClaimAnswer, Leader } from "../../core/lease/claim.ts";
import {
  answered,
  type Election,
  startElection,
  sure,
  unanswered,
} from "../../core/lease/election.ts";
import type { LeaseClock } from "./lease_clock.ts";

const log = logger("control", "lease");

export interface ElectorOptions {
  readonly store: {
    claim(claim: Claim): Promise<ClaimAnswer>;
    release(): Promise<void>;
  };
  readonly claim: Claim;
  readonly clock: LeaseClock;
  /** A new epoch begins, in a term that has been stored. It may be over before this resolves. */
  readonly onWon: (term: number) => void;
  /** The epoch is over: from now on nothing may be done for it. */
  readonly onLost: (by: Leader | undefined) => void;
}

/** Where this control stands. */
export interface Standing {
  readonly leading: boolean;
  /** The lease is good: nobody else can lead. */
  readonly sure: boolean;
  /** Who leads instead, as far as the store has said. */
  readonly leader: Leader | undefined;
  /** Why the store's last word is not known; undefined when it is. */
  readonly away: string | undefined;
}

export class Elector {
  readonly #options: ElectorOptions;
  #election: Election;
  #away: string | undefined;
  #saidUnsure = false;

  constructor(options: ElectorOptions) {
    this.#options = options;
    this.#election = startElection(options.clock.now());
  }

  get standing(): Standing {
    const election = this.#election;
    return {
      leading: election.kind === "leading",
      sure: this.sure(),
      leader: election.kind === "standing_by" ? election.leader : undefined,
      away: this.#away,
    };
  }

  /** True while this control may act. */
  sure(): boolean {
    return sure(this.#election, this.#options.clock.now());
  }

  /** Claims until `signal` aborts. Rejects when the store can never be used by this version. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await delay(Math.max(0, this.#election.nextClaimAt - this.#options.clock.now()), signal);
      if (!signal.aborted) await this.claim();
    }
  }

  /** Claims once, and deals with the answer. Rejects as `run` does. */
  async claim(): Promise<void> {
    const { store, claim, clock } = this.#options;
    const sentAt = clock.now();
    let answer: ClaimAnswer;
    try {
      answer = await store.claim(claim);
    } catch (error) {
      if (error instanceof HeddleError && error.code === "failed_precondition") throw error;
      this.#election = unanswered(this.#election, clock.now());
      return this.#sayAway(errorText(error));
    }
    this.#sayBack();
    this.#become(answered({ sentAt, leaseMs: claim.leaseMs }, answer));
  }

  /** Ends leading, so that another control can begin at once. Never rejects. */
  async resign(): Promise<void> {
    if (this.#election.kind !== "leading") return;
    this.#become({ ...startElection(Infinity) });
    try {
      await this.#options.store.release();
    } catch (error) {
      // Then it ends by itself, a little later.
      log.warning("Cannot give back the lease", { reason: errorText(error) });
    }
  }

  #become(next: Election): void {
    const before = epochOf(this.#election);
    this.#election = next;
    const now = epochOf(next);
    if (before === now) return;
    if (before !== undefined) {
      this.#options.onLost(next.kind === "standing_by" ? next.leader : undefined);
    }
    if (next.kind === "leading") this.#options.onWon(next.term);
  }

  #sayAway(reason: string): void {
    if (this.#away === undefined) log.warning("The store does not answer", { reason });
    this.#away = reason;
    if (this.#saidUnsure || this.#election.kind !== "leading" || this.sure()) return;
    this.#saidUnsure = true;
    log.error("Nothing is started or stopped until the store answers; what runs goes on", {
      reason,
    });
  }

  #sayBack(): void {
    if (this.#away !== undefined) log.info("The store answers again");
    this.#away = undefined;
    this.#saidUnsure = false;
  }
}

function epochOf(election: Election): number | undefined {
  return election.kind === "leading" ? election.epoch : undefined;
}
