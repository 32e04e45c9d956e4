/**
 * One limit per minute, as a generic cell rate algorithm with a guard on the last minute.
 *
 * The algorithm keeps one number, what may pass at once, which refills at a steady rate up to a
 * minute's worth. So a pause earns a burst, and the wait until something fits is exact. By itself it
 * would let twice the limit through in the minute after a pause: the burst, and what refills
 * meanwhile. So what was taken is remembered for a minute, and the sum of any minute stays below
 * the limit and a tenth.
 *
 * Several routers share a limit: each lives on its share, a rate that is also the most it may save
 * up, and on credit that control hands out besides. A lone router's share is the limit.
 *
 * Tokens are taken before anyone knows how many there will be. What was taken too much is given
 * back; what was used beyond it is owed, however much it is: the level falls below zero, and must
 * refill before anything passes.
 */

const MINUTE_MS = 60_000;
/** What a minute may hold beyond the limit, as a share of it. */
const SLACK = 0.1;
/** Takings closer to each other than this are remembered as one, of the later moment. */
const GRAIN_MS = 1_000;
/** Sums of fractions are off by a little; nobody is refused for it. */
const EPSILON = 1e-6;

/** What a request took of a meter; handed back to `settle`. */
export interface Taken {
  /** First and last moment of the takings that are remembered as one with it. */
  readonly since: number;
  at: number;
  amount: number;
  /** A minute has passed. */
  forgotten: boolean;
}

/** Rates in units per minute; moments in milliseconds, monotonic. */
export class Meter {
  #limit: number;
  #share: number;
  #level: number;
  #at: number;
  /** Control has nothing for what was missing before this moment. */
  #closedUntil = -Infinity;
  #minute: Taken[] = [];
  #sum = 0;
  #used = 0;

  /** Starts with a whole minute's worth of `share`, which is the limit unless others share it. */
  constructor(limit: number, now: number, share = limit) {
    this.#limit = limit;
    this.#share = share;
    this.#level = share;
    this.#at = now;
  }

  get limit(): number {
    return this.#limit;
  }

  get share(): number {
    return this.#share;
  }

  /** All that was taken and not given back since it was made. */
  get used(): number {
    return this.#used;
  }

  /** What may pass at once as far as the share goes; below zero when more was used than there was. */
  level(now: number): number {
    this.#move(now);
    return this.#level;
  }

  /** From `now` on another limit holds; the share follows in proportion until control says more. */
  change(limit: number, now: number): void {
    this.#move(now);
    // What control said was of the other limit.
    this.#closedUntil = -Infinity;
    if (this.#share === this.#limit) {
      // What was used stays used.
      this.#level += limit - this.#limit;
      this.#share = limit;
    } else {
      this.#level = Math.min(this.#level, limit);
      this.#share *= this.#limit > 0 ? limit / this.#limit : 0;
    }
    this.#limit = limit;
  }

  /**
   * Lives on another share from now on, with `credit` beyond what it has. `roomInMs`: until control
   * will have what was missing.
   */
  grant(
    { share, credit, roomInMs = 0 }: { share: number; credit: number; roomInMs?: number },
    now: number,
  ): void {
    this.#move(now);
    this.#share = share;
    this.#level += credit;
    // Asked with nothing missing, control has nothing to say of it.
    if (roomInMs > 0) this.#closedUntil = now + roomInMs;
  }

  /** Forgets what it has beyond `keep`, and says how much that was. */
  giveBack(keep: number, now: number): number {
    this.#move(now);
    const back = Math.max(0, this.#level - Math.max(0, keep));
    this.#level -= back;
    return back;
  }

  /** Whole units that would pass now. */
  left(now: number): number {
    this.#move(now);
    const left = Math.min(this.#level, this.#most() - this.#sum);
    return Math.max(0, Math.floor(left + EPSILON));
  }

  /** What is missing for `units` to pass now, as far as the share goes. */
  missing(units: number, now: number): number {
    this.#move(now);
    const missing = this.capped(units) - this.#level;
    return missing <= EPSILON ? 0 : missing;
  }

  /** Milliseconds until `units` would pass if nobody else came; 0 when they do now. */
  waitMs(units: number, now: number): number {
    const missing = this.missing(units, now);
    if (this.#limit <= 0) return Infinity;
    const guardMs = this.#guardMs(this.capped(units), now);
    return missing > 0
      ? Math.max(this.#toldMs(now) ?? this.#refillMs(missing, units), guardMs)
      : guardMs;
  }

  /** Milliseconds until everything that was used has come back. */
  fullMs(now: number): number {
    this.#move(now);
    const refillMs = this.#refillMs(Math.max(0, this.#share - this.#level), this.#share);
    return Math.max(refillMs, this.#guardMs(this.#share, now), this.#toldMs(now) ?? 0);
  }

  /** Nothing was taken within a minute, and nothing is owed. */
  idle(now: number): boolean {
    this.#move(now);
    return this.#minute.length === 0 && this.#level >= 0;
  }

  /** No more is ever taken at once than the limit itself: else such a request would never pass. */
  capped(units: number): number {
    return Math.min(units, this.#limit);
  }

  /** Takes `units`, whether they fit or not. */
  take(units: number, now: number): Taken {
    this.#move(now);
    this.#level -= units;
    this.#sum += units;
    this.#used += units;
    const last = this.#minute.at(-1);
    if (last !== undefined && now - last.since < GRAIN_MS) {
      last.at = now;
      last.amount += units;
      return last;
    }
    const taken = { since: now, at: now, amount: units, forgotten: false };
    this.#minute.push(taken);
    return taken;
  }

  /** Puts `used` in the place of `units` that were taken. */
  settle(taken: Taken, { units, used }: { units: number; used: number }, now: number): void {
    this.#move(now);
    const back = units - used;
    if (back <= 0) {
      if (back < 0) this.take(-back, now);
      return;
    }
    // What has refilled meanwhile must not come back a second time.
    const room = Math.max(this.#share, this.#level);
    this.#level = Math.min(room, this.#level + back);
    this.#used -= back;
    if (taken.forgotten) return;
    taken.amount -= back;
    this.#sum -= back;
  }

  #most(): number {
    return this.#limit * (1 + SLACK);
  }

  #toldMs(now: number): number | undefined {
    return this.#closedUntil > now ? this.#closedUntil - now : undefined;
  }

  // A share that is too small for `units` never saves up enough; then control must help, and the
  // limit itself says how long that takes at most.
  #refillMs(missing: number, units: number): number {
    if (missing <= 0) return 0;
    const rate = this.capped(units) <= this.#share + EPSILON ? this.#share : this.#limit;
    return rate > 0 ? missing * MINUTE_MS / rate : Infinity;
  }

  #move(now: number): void {
    if (now > this.#at) {
      const refilled = this.#level + (now - this.#at) * this.#share / MINUTE_MS;
      // Credit beyond the share stays; it only does not grow.
      this.#level = Math.max(this.#level, Math.min(this.#share, refilled));
      this.#at = now;
    }
    let gone = 0;
    for (const taken of this.#minute) {
      if (now - taken.at < MINUTE_MS) break;
      taken.forgotten = true;
      this.#sum -= taken.amount;
      gone++;
    }
    if (gone === 0) return;
    this.#minute = this.#minute.slice(gone);
    if (this.#minute.length === 0) this.#sum = 0;
  }

  #guardMs(units: number, now: number): number {
    let excess = this.#sum + units - this.#most();
    if (excess <= EPSILON) return 0;
    for (const { at, amount } of this.#minute) {
      excess -= amount;
      if (excess <= EPSILON) return at + MINUTE_MS - now;
    }
    return 0;
  }
}
