/** One timer for each key: setting it anew replaces the one before. */

/** Node's timers cannot wait longer. */
const TIMER_MS_MAX = 2 ** 31 - 1;

export class Timers {
  readonly #timers = new Map<string, ReturnType<typeof setTimeout>>();

  /** Calls `fire` in `waitMs`, or at once when that is past; sooner when it is beyond 24 days. */
  set(key: string, waitMs: number, fire: () => void): void {
    this.clear(key);
    const timer = setTimeout(() => {
      this.#timers.delete(key);
      fire();
    }, Math.min(Math.max(0, waitMs), TIMER_MS_MAX));
    this.#timers.set(key, timer);
  }

  clear(key: string): void {
    clearTimeout(this.#timers.get(key));
    this.#timers.delete(key);
  }

  clearAll(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
  }
}
