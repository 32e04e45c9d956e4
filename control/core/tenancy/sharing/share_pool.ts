/**
 * One limit that several routers live by. Each holds a share; together they never hold more than the
 * limit, because nobody's share grows before another has said that it lives by less.
 *
 * A rate's share refills what its router may admit at once. What routers have saved up, and the rate
 * that nobody holds, must not be there twice: what one gives back lies here until another needs it,
 * and control saves up for the rate that is free.
 */
import { divide } from "./divide.ts";

const MINUTE_MS = 60_000;

/** How long a share counts as taken by a router that is not heard of. It asks every second. */
export const SHARE_VALID_MS = 5_000;

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
  /** What counts as taken: what it lives by, or may live by when the answer arrives. */
  readonly booked: number;
  readonly wanted: number;
  /** As it said last. */
  readonly credit: number;
  readonly until: number;
}

export class SharePool {
  readonly #kind: "rate" | "slots";
  #limit: number;
  #holders = new Map<string, Holder>();
  /** Credit that no router has. */
  #saved: number;
  #at: number;

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

  /** The router's answer to `demand`, which it lives by from now on. */
  ask(router: string, demand: Demand, now: number): Grant {
    this.#move(now);
    const { wanted, held, credit } = clean(demand);
    this.#saved += clean(demand).returned;
    this.#holders.set(router, { booked: held, wanted, credit, until: now + SHARE_VALID_MS });
    this.#clampSaved();
    const share = this.#shareOf(router);
    const granted = this.#kind === "slots" ? 0 : this.#creditFor(share, clean(demand));
    this.#saved -= granted;
    this.#holders.set(router, {
      booked: Math.max(held, share),
      wanted,
      credit: credit + granted,
      until: now + SHARE_VALID_MS,
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
  #creditFor(share: number, { credit, missing }: Demand): number {
    const part = this.#limit > 0 ? this.#saved * share / this.#limit : 0;
    const room = Math.max(0, share - credit);
    return Math.min(this.#saved, Math.max(missing, Math.min(part, room)));
  }

  #idleAt(router: string): readonly string[] {
    const idle = (holder: Holder) =>
      holder.booked > holder.wanted + EPSILON ||
      (this.#kind === "rate" && holder.credit > EPSILON);
    return [...this.#holders].filter(([name, holder]) => name !== router && idle(holder))
      .map(([name]) => name);
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
