/**
 * Work that may take long, done at most once at a time, whose caller waits only so long for it. A
 * wedged driver or file server must not hold up a heartbeat, and must not be asked twice.
 */
export class SingleFlight {
  #running: Promise<void> | undefined;

  /**
   * Starts `work` unless it runs already, and waits for its end at most `waitMs`. True: it ended.
   * False: it goes on. Rejects as `work` does, and when `signal` aborts.
   */
  async within(waitMs: number, signal: AbortSignal, work: () => Promise<void>): Promise<boolean> {
    signal.throwIfAborted();
    const late = Promise.withResolvers<false>();
    const timer = setTimeout(() => late.resolve(false), waitMs);
    const abort = (): void => late.reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    try {
      const joined = this.#running;
      if (joined !== undefined) {
        // It may end by its own starter's signal, which is no news to this caller: then begin anew.
        const ended = await Promise.race([joined.then(() => true, () => "failed"), late.promise]);
        if (ended !== "failed") return ended === true;
      }
      return await Promise.race([this.#start(work).then(() => true), late.promise]);
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
    }
  }

  #start(work: () => Promise<void>): Promise<void> {
    if (this.#running !== undefined) return this.#running;
    const running = work().finally(() => this.#running = undefined);
    // Whoever waits hears of a rejection; when nobody does any more, it is not unhandled.
    running.catch(() => {});
    this.#running = running;
    return running;
  }
}
