/**
 * One limit that several routers live by. Each holds a share; together they never hold more than the
 * limit, because nobody's share grows before another has said that it lives by less.
 *
 * A rate's share refills what its router may admit at once. What routers have saved up, and the rate
 * that nobody holds, must not be there twice: what one gives back lies here until another needs it,
 * and control saves up for the rate that is free.
 *
 * A burst and what refills after it would be twice the limit in one minute. So what routers have used
 * is remembered for a minute, and nothing is given out that could bring a minute above the limit and
 * a sixteenth, with all that the routers may use until they ask again. Those that ask later than that
 * still stay within a tenth, for two seconds more.
 */
import { divide } from "./divide.ts";
import { LastMinute, MINUTE_MS } from "./last_minute.ts";
import {
  type Call,
  creditOf,
  shareOf,
  sortAnswers,
  type Underway,
  withAnswer,
} from "./underway.ts";

/** How long a share counts as taken by a router that is not heard of. It asks every second. */
export const SHARE_VALID_MS = 5_000;

/** What a minute may hold beyond the limit, as a share of it. */
const SLACK = 1 / 16;
/** A router asks again within this: so long it may use a rate that it was given. */
const RATE_HELD_MS = 2_000;

/** A request waits so long for what its router misses. */
const WAITS_MS = 100;

/** Less than this of something is rounding. */
const EPSILON = 1e-9;

/** What a router says of one limit; see ShareDemand on the wire. */
export interface Demand {
  readonly wanted: number;
  readonly held: number;
  readonly credit: number;
  readonly returned: number;
  readonly missing: number;
  /** All that it has used since it first asked; undefined of a router that does not count. */
  readonly used?: number | undefined;
}

export interface Grant {
  readonly share: number;
  readonly credit: number;
  /** Routers that hold what this one needs and they do not want. */
  readonly idleAt: readonly string[];
  /**
   * In ms: until there is what is missing, and room for it in the last minute, if nobody else comes; 0
   * when it was given.
   */
  readonly roomInMs: number;
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
  /** Until then requests of its may wait for what it was not given. */
  readonly waitsUntil: number;
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
  /** What each router said last that it has used, as long as it holds anything or is only silent. */
  readonly #totals = new Map<string, number>();

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
    const { wanted, held, missing, returned, used, ...said } = clean(demand);
    this.#saved += this.#bookedInVain(router, held, now);
    const underway = this.#heard(router, call);
    const credit = said.credit + creditOf(underway);
    const mayHold = Math.max(held, shareOf(underway));
    this.#note(router, { used, left: credit + returned }, now);
    this.#saved += returned;
    const heard = { wanted, at: now, until: now + SHARE_VALID_MS, underway };
    const waitsUntil = -Infinity;
    this.#holders.set(router, { ...heard, booked: mayHold, credit, share: mayHold, waitsUntil });
    this.#clampSaved();
    const { share, granted, roomInMs } = this.#give(router, { credit, missing });
    this.#saved -= granted;
    const short = this.#kind === "slots"
      ? wanted > share + EPSILON
      : demand.missing > granted + EPSILON;
    this.#holders.set(router, {
      ...heard,
      booked: Math.max(mayHold, share),
      credit: credit + granted,
      share,
      waitsUntil: short ? now + WAITS_MS : -Infinity,
      ...(call === undefined
        ? {}
        : { underway: withAnswer(underway, call.id, { credit: granted, share, returned, held }) }),
    });
    return { share, credit: granted, idleAt: short ? this.#idleAt(router) : [], roomInMs };
  }

  #give(router: string, has: Pick<Demand, "credit" | "missing">) {
    const target = this.#shareOf(router);
    if (this.#kind === "slots") return { share: target, granted: 0, roomInMs: 0 };
    const room = this.#roomFor(router);
    const granted = Math.max(0, Math.min(this.#saved, room, this.#creditFor(router, target, has)));
    const rate = Math.max(0, room - granted) * MINUTE_MS / RATE_HELD_MS;
    return {
      share: Math.min(target, rate),
      granted,
      roomInMs: granted < has.missing - EPSILON ? this.#roomInMs(router, has.missing, room) : 0,
    };
  }

  /** The router gave everything back, or is another process now. What it had saved is lost. */
  drop(router: string, now: number): void {
    this.#move(now);
    this.#holders.delete(router);
    this.#totals.delete(router);
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

  /** What was kept for the share that a router lived by before, and it has lived by less since. */
  #bookedInVain(router: string, held: number, now: number): number {
    const before = this.#holders.get(router);
    if (before === undefined || this.#kind === "slots") return 0;
    const vain = Math.max(0, before.booked - Math.max(before.share, held));
    return vain * (now - before.at) / MINUTE_MS;
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
  // others find something too, and nothing while others wait: it may be theirs that was given back.
  #creditFor(
    router: string,
    share: number,
    { credit, missing }: Pick<Demand, "credit" | "missing">,
  ): number {
    for (const [name, { waitsUntil }] of this.#holders) {
      if (name !== router && waitsUntil > this.#at) return missing;
    }
    const part = this.#limit > 0 ? this.#saved * share / this.#limit : 0;
    const room = Math.max(0, share - credit);
    const wished = Math.max(missing, Math.min(part, room));
    return wished;
  }

  /** What the router may have to use, with what it has, beside all that others may use meanwhile. */
  #roomFor(router: string): number {
    let reserved = 0;
    for (const [name, holder] of this.#holders) {
      reserved += name === router ? Math.max(0, holder.credit) : this.#mayUse(holder);
    }
    return this.#limit * (1 + SLACK) - this.#used.sum(this.#at) - reserved;
  }

  #roomInMs(router: string, missing: number, room: number): number {
    const free = this.#limit - this.#booked(router);
    const lacking = Math.max(0, missing - this.#saved);
    // While others live by all of it, it is theirs until they are asked again.
    const savedInMs = lacking * MINUTE_MS / (free > EPSILON ? free : this.#limit);
    return Math.max(this.#used.freeMs(missing - room, this.#at), savedInMs);
  }

  #mayUse({ credit, booked, at }: Holder): number {
    const until = Math.max(this.#at, at + RATE_HELD_MS);
    return Math.max(0, credit) + booked * (until - at) / MINUTE_MS;
  }

  #note(
    router: string,
    { used, left }: { readonly used: number | undefined; readonly left: number },
    now: number,
  ): void {
    const before = this.#holders.get(router);
    const total = this.#totals.get(router);
    if (used !== undefined) {
      this.#totals.set(router, used);
      // Who was not heard of before has used what it did by another control's word.
      if (total !== undefined) this.#used.add(used - total, now);
    } else if (before !== undefined && this.#kind === "rate") {
      this.#used.add(Math.max(0, inferred(before, now) - left), now);
    }
  }

  #idleAt(router: string): readonly string[] {
    const idle = (holder: Holder) =>
      holder.booked > holder.wanted + EPSILON ||
      (this.#kind === "rate" && holder.credit > EPSILON);
    return [...this.#holders].filter(([name, holder]) => name !== router && idle(holder))
      .map(([name]) => name);
  }
}

// What a router would have now if it had used nothing: credit beyond the share does not grow.
function inferred({ credit, share, at }: Holder, now: number): number {
  const refilled = credit + share * (now - at) / MINUTE_MS;
  return Math.max(credit, Math.min(refilled, share));
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
    used: demand.used === undefined ? undefined : amount(demand.used),
  };
}
