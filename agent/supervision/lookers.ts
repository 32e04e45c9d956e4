/** Those who wait for something to become true, and are to look again after each change. */
export class Lookers {
  readonly #lookers = new Set<() => void>();

  /** Something changed. */
  lookAgain(): void {
    for (const look of [...this.#lookers]) look();
  }

  /** Resolves once `holds`, or when `signal` aborts. */
  until(holds: () => boolean, signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const look = () => {
      if (!signal.aborted && !holds()) return;
      this.#lookers.delete(look);
      signal.removeEventListener("abort", look);
      resolve();
    };
    this.#lookers.add(look);
    signal.addEventListener("abort", look);
    look();
    return promise;
  }
}
