/** What all routers have used of one limit within the last minute. */

export const MINUTE_MS = 60_000;
/** Less than this of something is rounding. */
const EPSILON = 1e-9;
const STEP_MS = 1_000;

/** What was added within a minute, in steps of a second. */
export class LastMinute {
  #steps: { readonly since: number; at: number; amount: number }[] = [];
  #sum = 0;

  /** Below zero: so much was taken too much lately, and has been given back. */
  add(amount: number, now: number): void {
    if (amount < 0) this.#takeBack(-amount);
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

  #takeBack(amount: number): void {
    let left = Math.min(amount, this.#sum);
    this.#sum -= left;
    for (const step of this.#steps.toReversed()) {
      const back = Math.min(left, step.amount);
      step.amount -= back;
      left -= back;
    }
  }

  /** Of all that was added. */
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

  /** In ms: until `amount` of it is older than a minute; a minute where there is not so much of it. */
  freeMs(amount: number, now: number): number {
    if (amount <= EPSILON) return 0;
    let left = amount;
    for (const step of this.#steps) {
      left -= step.amount;
      if (left <= EPSILON) return Math.max(0, step.at + MINUTE_MS - now);
    }
    return MINUTE_MS;
  }
}
