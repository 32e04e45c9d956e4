/**
 * One limit that several routers live by. Each holds a share; together they never hold more than the
 * limit, because nobody's share grows before another has said that it lives by less.
 *
 * A rate's share refills what its router may admit at once. What routers have saved up, and the rate
 * that nobody holds, must not be there twice: what one gives back lies here until another needs it,
 * and control saves up for the rate that is free.
 *
 * A burst and what refills after it would be twice the limit in one minute. So what routers have used
 * is remembered for a minute, as it follows from what they say they still have, and nothing is given
 * out that could bring a minute above the limit and a sixteenth: what routers do before they are heard
 * of again then stays within a tenth.
 */
import { divide } from "./divide.ts";
import {
  type Call,
  creditOf,
  shareOf,
  sortAnswers,
  type Underway,
  withAnswer,
} from "./underway.ts";

const MINUTE_MS = 60_000;

/** How long a share counts as taken by a router that is not heard of. It asks every second. */
export const SHARE_VALID_MS = 5_000;

/** What a minute may hold beyond the limit, as a share of it. */
const SLACK = 1 / 16;
/** A rate that is given out is used for so long before it can be taken back. */
const RATE_HELD_MS = 2_000;

/** Less than this of something is rounding. */
const EPSILON = 1e-9;

/** What a router says of one limit; see ShareDemand on the wire. */
export interface Demand {
  readonly wanted: number;
  readonly held: number;
  readonly credit: number;
  readonly returned: number;
  readonly missing: number;
}

export interface Grant {
  readonly share: number;
  readonly credit: number;
  /** Routers that hold what this one needs and they do not want. */
  readonly idleAt: readonly string[];
}

interface Holder {
  /** Answers that it may not have. */
  readonly underway: Underway;
  /** What counts as taken: what it lives by, or may live by when the answer arrives. */
  readonly booked: number;
  readonly wanted: number;
  /** What it has saved up, with what it was given last. */
  readonly credit: number;
  /** What it lives by since, if the answer arrived. */
  readonly share: number;
  readonly at: number;
  readonly until: number;
}

export class SharePool {
  readonly #kind: "rate" | "slots";
  #limit: number;
  #holders = new Map<string, Holder>();
  /** Credit that no router has. */
  #saved: number;
  #at: number;
  readonly #used = new LastMinute();

  /** `saved` is what may be admitted at once before anybody asks: at most a minute's worth. */
  constructor(
    kind: "rate" | "slots",
    limit: number,
    { saved, now }: { saved: number; now: number },
  ) {
    this.#kind = kind;
    this.#limit = limit;
    this.#saved = Math.min(saved, limit);
    this.#at = now;
  }

  /** True while some router holds a share. */
  get used(): boolean {
    return this.#holders.size > 0;
  }

  /** Routers' shares together never exceed it, but for what they lived by when it was lowered. */
  change(limit: number, now: number): void {
    this.#move(now);
    this.#limit = limit;
    this.#saved = Math.min(this.#saved, limit);
  }

  /**
   * The router's answer to `demand`, which it lives by from now on. Of a router that does not say
   * which `call` it is, every answer is taken to arrive.
   */
  ask(router: string, demand: Demand, now: number, call?: Call): Grant {
    this.#move(now);
    const { wanted, held, missing, returned, ...said } = clean(demand);
    const underway = this.#heard(router, call);
    const credit = said.credit + creditOf(underway);
    const mayHold = Math.max(held, shareOf(underway));
    this.#note(router, credit + returned, now);
    this.#saved += returned;
    const heard = { wanted, at: now, until: now + SHARE_VALID_MS, underway };
    this.#holders.set(router, { ...heard, booked: mayHold, credit, share: mayHold });
    this.#clampSaved();
    const target = this.#shareOf(router);
    const granted = this.#kind === "slots" ? 0 : this.#creditFor(target, { credit, missing });
    this.#saved -= granted;
    const share = this.#kind === "slots"
      ? target
      : Math.min(target, this.#rateFor(router, granted));
    this.#holders.set(router, {
      ...heard,
      booked: Math.max(mayHold, share),
      credit: credit + granted,
      share,
      ...(call === undefined
        ? {}
        : { underway: withAnswer(underway, call.id, { credit: granted, share, returned, held }) }),
    });
    const short = this.#kind === "slots"
      ? wanted > share + EPSILON
      : demand.missing > granted + EPSILON;
    return { share, credit: granted, idleAt: short ? this.#idleAt(router) : [] };
  }

  /** The router gave everything back, or is another process now. What it had saved is lost. */
  drop(router: string, now: number): void {
    this.#move(now);
    this.#holders.delete(router);
  }

  /** Takes back what was in answers that are lost. Returns those that may still arrive. */
  #heard(router: string, call: Call | undefined): Underway {
    const before = this.#holders.get(router);
    if (before === undefined) return new Map();
    const { underway, lost } = sortAnswers(before.underway, call);
    let { credit, share } = before;
    for (const answer of lost) {
      this.#saved += answer.credit - answer.returned;
      credit += answer.returned - answer.credit;
      share = answer.held;
    }
    this.#holders.set(router, { ...before, credit, share, underway });
    return underway;
  }

  /** Forgets routers that were not heard of, and saves up for the rate that nobody holds. */
  #move(now: number): void {
    const elapsed = Math.max(0, now - this.#at);
    this.#at = Math.max(this.#at, now);
    const free = Math.max(0, this.#limit - this.#booked());
    if (this.#kind === "rate") this.#saved += free * elapsed / MINUTE_MS;
    for (const [router, { until }] of this.#holders) {
      if (until <= now) this.#holders.delete(router);
    }
    this.#clampSaved();
  }

  // All that is saved, here and by routers, is a minute's worth at most.
  #clampSaved(): void {
    let theirs = 0;
    for (const { credit } of this.#holders.values()) theirs += Math.max(0, credit);
    this.#saved = Math.max(0, Math.min(this.#saved, this.#limit - theirs));
  }

  #booked(but?: string): number {
    let sum = 0;
    for (const [router, { booked }] of this.#holders) if (router !== but) sum += booked;
    return sum;
  }

  #shareOf(router: string): number {
    const names = [...this.#holders.keys()].sort();
    const demands = names.map((name) => this.#holders.get(name)?.wanted ?? 0);
    const form = this.#kind === "slots" ? "whole" : "fractions";
    const target = divide(this.#limit, demands, form)[names.indexOf(router)] ?? 0;
    const free = this.#limit - this.#booked(router);
    return Math.max(0, Math.min(target, free));
  }

  // What is missing is given while it lasts; beyond it, a part like the share's of the limit, so that
  // others find something too.
  #creditFor(share: number, { credit, missing }: Pick<Demand, "credit" | "missing">): number {
    const part = this.#limit > 0 ? this.#saved * share / this.#limit : 0;
    const room = Math.max(0, share - credit);
    const wished = Math.max(missing, Math.min(part, room));
    return Math.max(0, Math.min(this.#saved, wished, this.#roomInMinute()));
  }

  /** The rate that `router` can be given beside the others without filling the minute. */
  #rateFor(router: string, granted: number): number {
    const all = (this.#roomInMinute() - granted) * MINUTE_MS / RATE_HELD_MS;
    return Math.max(0, all - this.#booked(router));
  }

  /** What routers could be given to use at once, beside what they have. */
  #roomInMinute(): number {
    let theirs = 0;
    for (const { credit } of this.#holders.values()) theirs += credit;
    return this.#limit * (1 + SLACK) - this.#used.sum(this.#at) - theirs;
  }

  /** What a router has used since it was heard of last, as what it has now tells. */
  #note(router: string, has: number, now: number): void {
    const before = this.#holders.get(router);
    if (before === undefined || this.#kind === "slots") return;
    const refilled = before.credit + before.share * (now - before.at) / MINUTE_MS;
    const could = Math.max(before.credit, Math.min(refilled, before.share));
    this.#used.add(Math.max(0, could - has), now);
  }

  #idleAt(router: string): readonly string[] {
    const idle = (holder: Holder) =>
      holder.booked > holder.wanted + EPSILON ||
      (this.#kind === "rate" && holder.credit > EPSILON);
    return [...this.#holders].filter(([name, holder]) => name !== router && idle(holder))
      .map(([name]) => name);
  }
}

const STEP_MS = 1_000;

/** The sum of what was added within a minute, in steps of a second. */
class LastMinute {
  #steps: { readonly since: number; at: number; amount: number }[] = [];
  #sum = 0;

  add(amount: number, now: number): void {
    if (amount <= 0) return;
    this.#sum += amount;
    const last = this.#steps.at(-1);
    if (last === undefined || now - last.since >= STEP_MS) {
      this.#steps.push({ since: now, at: now, amount });
      return;
    }
    // The last moment counts for all of a step: nothing is forgotten too early.
    last.at = now;
    last.amount += amount;
  }

  sum(now: number): number {
    let gone = 0;
    for (const { at, amount } of this.#steps) {
      if (now - at < MINUTE_MS) break;
      this.#sum -= amount;
      gone++;
    }
    if (gone > 0) this.#steps = this.#steps.slice(gone);
    if (this.#steps.length === 0) this.#sum = 0;
    return this.#sum;
  }
}

// What makes no sense on the wire is nothing.
function clean(demand: Demand): Demand {
  const amount = (value: number) => Number.isFinite(value) ? Math.max(0, value) : 0;
  return {
    wanted: amount(demand.wanted),
    held: amount(demand.held),
    credit: amount(demand.credit),
    returned: amount(demand.returned),
    missing: amount(demand.missing),
  };
}
