/**
 * What is known of one replica's load: what this router sent there, what the others have there, and
 * what the engine said when it was last asked. The engine's word is seconds old, so it is carried
 * forward by what was sent and what ended since: otherwise a burst between two scrapes would all go
 * to the replica that looked emptiest at the first.
 */
import type { EngineSample } from "./engine_sample.ts";
import {
  type FirstTokenLine,
  type FirstTokens,
  lineOf,
  measured,
  NO_FIRST_TOKENS,
} from "./first_token.ts";

/** One request at a replica. Owned by `ReplicaLoad`. */
export interface Work {
  /** Prompt and answer, as reserved. */
  readonly tokens: number;
  /** Prompt tokens that the replica's cache does not have, as estimated. */
  readonly uncached: number;
  /** What had to be computed before its first token, when it was sent. */
  readonly ahead: number;
  readonly sentAt: number;
  /** When its first token will be taken to have come, if nobody will see it; else Infinity. */
  readonly dueAt: number;
}

export interface NewWork extends Pick<Work, "tokens" | "uncached"> {
  /** Its first token will be seen. Answers that are not streamed show only their end. */
  readonly streamed: boolean;
}

export interface LoadPresent {
  readonly inFlight: number;
  readonly othersInFlight: number;
  /** Prompts and answers of everything in flight, the other routers' included. */
  readonly reservedTokens: number;
  /** Requests of this router without a first token yet, and their prompt tokens to compute. */
  readonly pending: number;
  readonly backlogTokens: number;
  /** How long the oldest of these has waited, in ms; 0 without any. */
  readonly oldestPendingMs: number;
  /** Requests that wait inside the engine, carried forward; undefined when it does not say. */
  readonly waiting: number | undefined;
  /** Those that waited at both of its last two words: a queue that stands, not a moment's. */
  readonly standing: number | undefined;
  readonly kvUsage: number | undefined;
  readonly firstToken: FirstTokenLine;
}

interface Told {
  readonly sample: EngineSample;
  readonly at: number;
  /** What waited at the time before. */
  readonly waitedBefore: number;
  /** What was in flight and reserved when the engine was asked. */
  readonly inFlight: number;
  readonly reserved: number;
}

export class ReplicaLoad {
  #inFlight = 0;
  #reserved = 0;
  #others = { inFlight: 0, reservedTokens: 0 };
  readonly #pending = new Set<Work>();
  #backlog = 0;
  #told: Told | undefined;
  #firstTokens: FirstTokens = NO_FIRST_TOKENS;

  get inFlight(): number {
    return this.#inFlight;
  }

  /** Requests there, the other routers' included. */
  get all(): number {
    return this.#inFlight + this.#others.inFlight;
  }

  /** Tokens that this router's requests reserve there. */
  get reservedTokens(): number {
    return this.#reserved;
  }

  /** What the engine said last, and how long ago; undefined when it never did. */
  told(now: number): { readonly sample: EngineSample; readonly ageMs: number } | undefined {
    return this.#told && { sample: this.#told.sample, ageMs: now - this.#told.at };
  }

  /** A request was sent. Whoever sent it ends it, once. */
  begin({ tokens, uncached, streamed }: NewWork, now: number): Work {
    const ahead = this.#backlog + uncached;
    const { constantMs, msPerToken } = lineOf(this.#firstTokens, now);
    const dueAt = streamed ? Infinity : now + constantMs + msPerToken * ahead;
    const work = { tokens, uncached, ahead, sentAt: now, dueAt };
    this.#inFlight++;
    this.#reserved += tokens;
    this.#pending.add(work);
    this.#backlog += uncached;
    return work;
  }

  /** Its first token came. Only the first call counts; false for another. */
  firstToken(work: Work, now: number): boolean {
    if (!this.#settle(work)) return false;
    const ms = Math.max(0, now - work.sentAt);
    this.#firstTokens = measured(this.#firstTokens, { tokens: work.ahead, ms }, now);
    return true;
  }

  /** It ended, whichever way. */
  end(work: Work): void {
    this.#settle(work);
    this.#inFlight--;
    this.#reserved -= work.tokens;
  }

  /** Takes what the other routers have there. */
  setOthers(others: { readonly inFlight: number; readonly reservedTokens: number }): void {
    this.#others = others;
  }

  /** Takes what the engine said at `now`. */
  observe(sample: EngineSample, now: number): void {
    this.#told = {
      sample,
      at: now,
      waitedBefore: this.#told?.sample.waiting ?? 0,
      inFlight: this.all,
      reserved: this.#allReserved,
    };
  }

  /** Everything at `now`. What the engine said more than `staleMs` ago is not known any more. */
  present(now: number, staleMs: number, usual?: FirstTokenLine): LoadPresent {
    const told = this.#told !== undefined && now - this.#told.at <= staleMs
      ? this.#told
      : undefined;
    for (const work of this.#pending) if (work.dueAt <= now) this.#settle(work);
    const [oldest] = this.#pending;
    return {
      inFlight: this.#inFlight,
      othersInFlight: this.#others.inFlight,
      reservedTokens: this.#allReserved,
      pending: this.#pending.size,
      backlogTokens: this.#backlog,
      oldestPendingMs: oldest === undefined ? 0 : Math.max(0, now - oldest.sentAt),
      waiting: told && this.#waiting(told),
      standing: told && this.#standing(told),
      kvUsage: told && this.#kvUsage(told),
      firstToken: lineOf(this.#firstTokens, now, usual),
    };
  }

  get #allReserved(): number {
    return this.#reserved + this.#others.reservedTokens;
  }

  #settle(work: Work): boolean {
    if (!this.#pending.delete(work)) return false;
    this.#backlog -= work.uncached;
    return true;
  }

  #waiting({ sample, inFlight }: Told): number | undefined {
    if (sample.waiting === undefined) return undefined;
    return Math.max(0, sample.waiting + this.all - inFlight);
  }

  /** What ended since made room for those that waited; what came since may not have to wait. */
  #standing({ sample, waitedBefore, inFlight }: Told): number | undefined {
    if (sample.waiting === undefined) return undefined;
    const since = Math.min(0, this.all - inFlight);
    return Math.max(0, Math.min(sample.waiting, waitedBefore) + since);
  }

  #kvUsage({ sample, reserved }: Told): number | undefined {
    if (sample.kvUsage === undefined || sample.kvTokens === undefined) return sample.kvUsage;
    const since = (this.#allReserved - reserved) / sample.kvTokens;
    return Math.min(1, Math.max(0, sample.kvUsage + since));
  }
}
