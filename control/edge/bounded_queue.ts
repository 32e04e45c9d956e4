/**
 * A queue between one producer that must not wait and one consumer that may be slow, such as the
 * network. It has a bound: what a consumer cannot keep up with is the producer's error to handle,
 * never memory that grows.
 */

/** What a consumer takes with `for await`, until the queue ends or fails. One consumer only. */
export class BoundedQueue<T> implements AsyncIterableIterator<T> {
  readonly #limit: number;
  #items: T[] = [];
  #end: { readonly error: unknown } | undefined;
  #wake: (() => void) | undefined;

  /** `limit` is the number of items that may wait. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get size(): number {
    return this.#items.length;
  }

  get ended(): boolean {
    return this.#end !== undefined;
  }

  /** Adds an item; false when the queue is full or has ended, and then nothing was added. */
  push(item: T): boolean {
    if (this.#end !== undefined || this.#items.length >= this.#limit) return false;
    this.#items.push(item);
    this.#signal();
    return true;
  }

  /** Nothing more comes; the consumer still gets what waits. Later ends and fails change nothing. */
  end(): void {
    this.#end ??= { error: undefined };
    this.#signal();
  }

  /** The consumer gets `error` now; what waits is dropped. Changes nothing once ended. */
  fail(error: unknown): void {
    if (this.#end !== undefined) return;
    this.#items = [];
    this.#end = { error };
    this.#signal();
  }

  async next(): Promise<IteratorResult<T>> {
    while (this.#items.length === 0 && this.#end === undefined) {
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
    const [item] = this.#items.splice(0, 1);
    if (item !== undefined) return { done: false, value: item };
    if (this.#end?.error !== undefined) throw this.#end.error;
    return { done: true, value: undefined };
  }

  /** The consumer left. */
  return(): Promise<IteratorResult<T>> {
    this.#items = [];
    this.end();
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #signal(): void {
    this.#wake?.();
    this.#wake = undefined;
  }
}
