/**
 * The most of something that there was at one time within the last minute. A band leaves free what
 * the better ones had lately and do not use at the moment: their next requests come at once, and
 * must not find every replica taken by work that does not hurry. Without such traffic nothing is
 * left free.
 */

/** Parts of the memory: a peak is forgotten between five and six of them later. */
const PART_MS = 10_000;
const PARTS = 6;

export class RecentPeak {
  /** Peaks of the last parts, by the part's number. */
  readonly #peaks = new Map<number, number>();

  /** There are `count` now. */
  saw(count: number, now: number): void {
    const part = Math.floor(now / PART_MS);
    const known = this.#peaks.get(part);
    if (known === undefined) {
      for (const old of this.#peaks.keys()) if (old <= part - PARTS) this.#peaks.delete(old);
    }
    if (count > (known ?? -1)) this.#peaks.set(part, count);
  }

  /** The most that was seen lately. */
  at(now: number): number {
    const oldest = Math.floor(now / PART_MS) - PARTS;
    let peak = 0;
    for (const [part, count] of this.#peaks) if (part > oldest && count > peak) peak = count;
    return peak;
  }
}
