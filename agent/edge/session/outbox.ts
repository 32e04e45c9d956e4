/** Messages on their way to control: in order, bounded, and ended when the stream is. */

/** A control that reads so slowly is as good as gone: registering again is cheaper than more. */
const MESSAGES_MAX = 4_096;

export class Outbox<T> {
  readonly #waiting: T[] = [];
  #wake: (() => void) | undefined;
  #state: "open" | "closed" | "full" = "open";

  /** False when the outbox is closed or was full: then nothing more goes out. */
  push(message: T): boolean {
    if (this.#state !== "open") return false;
    if (this.#waiting.length >= MESSAGES_MAX) this.#state = "full";
    else this.#waiting.push(message);
    this.#wake?.();
    return this.#state === "open";
  }

  /** How many messages wait. */
  get length(): number {
    return this.#waiting.length;
  }

  get overflowed(): boolean {
    return this.#state === "full";
  }

  /** What has been pushed still goes out. */
  close(): void {
    if (this.#state === "open") this.#state = "closed";
    this.#wake?.();
  }

  /** Yields each message once; ends when the outbox is closed and empty, or was full. */
  async *drain(): AsyncGenerator<T> {
    while (true) {
      const next = this.#state === "full" ? undefined : this.#waiting.shift();
      if (next !== undefined) {
        yield next;
      } else if (this.#state !== "open") {
        return;
      } else {
        const { promise, resolve } = Promise.withResolvers<void>();
        this.#wake = resolve;
        await promise;
        this.#wake = undefined;
      }
    }
  }
}
