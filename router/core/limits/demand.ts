/** How much of a limit is asked for, refusals included, as a rate. */

/** A rate falls by this part in a second without requests, so that a pause does not lose a share. */
const FALL_PER_S = 0.2;
/** Shorter than this, an interval says little of a rate. */
const INTERVAL_S_MIN = 0.2;

export class Demand {
  #units = 0;
  #perMinute = 0;
  #latest = 0;
  #since: number | undefined;

  ask(units: number): void {
    this.#units += units;
  }

  /** Units per minute since it was asked last, rising at once and falling slowly. */
  perMinute(now: number): number {
    const since = this.#since ?? now - 1_000;
    const seconds = (now - since) / 1_000;
    if (seconds < INTERVAL_S_MIN) {
      return this.#perMinute = Math.max(this.#perMinute, this.#units * 60);
    }
    this.#latest = this.#units * 60 / seconds;
    const faded = this.#perMinute * Math.pow(1 - FALL_PER_S, seconds);
    this.#since = now;
    this.#units = 0;
    this.#perMinute = Math.max(this.#latest, faded);
    return this.#perMinute;
  }

  /** Units per minute in the last second or two, with no memory beyond. */
  get latest(): number {
    return Math.max(this.#latest, this.#units * 60);
  }
}
