/** A clock that costs no time: what is due happens in order, at its own time. */

interface Due {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
}

export class Clock {
  readonly #heap: Due[] = [];
  #now = 0;
  #order = 0;

  get now(): number {
    return this.#now;
  }

  /** Runs `run` at `at`, or now if that has passed; of the same time the one that was said first. */
  at(at: number, run: () => void): void {
    const due = { at: Math.max(at, this.#now), order: this.#order++, run };
    let index = this.#heap.push(due) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!this.#before(index, parent)) break;
      this.#swap(index, parent);
      index = parent;
    }
  }

  /** Runs everything that is due until `untilMs`. */
  run(untilMs: number): void {
    for (;;) {
      const next = this.#heap[0];
      if (next === undefined || next.at > untilMs) break;
      this.#pop();
      this.#now = next.at;
      next.run();
    }
    this.#now = Math.max(this.#now, untilMs);
  }

  #pop(): void {
    const last = this.#heap.pop();
    if (last === undefined || this.#heap.length === 0) return;
    this.#heap[0] = last;
    let index = 0;
    for (;;) {
      let least = index;
      for (const child of [2 * index + 1, 2 * index + 2]) {
        if (child < this.#heap.length && this.#before(child, least)) least = child;
      }
      if (least === index) return;
      this.#swap(index, least);
      index = least;
    }
  }

  #before(a: number, b: number): boolean {
    const one = this.#heap[a];
    const other = this.#heap[b];
    if (one === undefined || other === undefined) return false;
    return one.at < other.at || one.at === other.at && one.order < other.order;
  }

  #swap(a: number, b: number): void {
    const one = this.#heap[a];
    const other = this.#heap[b];
    if (one === undefined || other === undefined) return;
    this.#heap[a] = other;
    this.#heap[b] = one;
  }
}
