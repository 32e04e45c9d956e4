/** The blocks nobody uses, least recently freed first, with removal from the middle in constant time. */
export class FreeList {
  readonly #next: Int32Array;
  readonly #previous: Int32Array;
  readonly #sentinel: number;
  #length = 0;

  /** Starts with blocks 0 … count-1, in order. */
  constructor(count: number) {
    this.#sentinel = count;
    this.#next = new Int32Array(count + 1).fill(-1);
    this.#previous = new Int32Array(count + 1).fill(-1);
    this.#next[count] = count;
    this.#previous[count] = count;
    for (let block = 0; block < count; block += 1) this.append(block);
  }

  get length(): number {
    return this.#length;
  }

  has(block: number): boolean {
    return this.#link(this.#next, block) !== -1;
  }

  /** Adds `block` as the most recently freed. */
  append(block: number): void {
    if (this.has(block)) throw new Error(`block ${block} is freed twice`);
    const last = this.#link(this.#previous, this.#sentinel);
    this.#next[last] = block;
    this.#previous[block] = last;
    this.#next[block] = this.#sentinel;
    this.#previous[this.#sentinel] = block;
    this.#length += 1;
  }

  remove(block: number): void {
    if (!this.has(block)) throw new Error(`block ${block} is not free`);
    const next = this.#link(this.#next, block);
    const previous = this.#link(this.#previous, block);
    this.#next[previous] = next;
    this.#previous[next] = previous;
    this.#next[block] = -1;
    this.#previous[block] = -1;
    this.#length -= 1;
  }

  /** Takes out the least recently freed block. */
  shift(): number | undefined {
    const first = this.#link(this.#next, this.#sentinel);
    if (first === this.#sentinel) return undefined;
    this.remove(first);
    return first;
  }

  #link(links: Int32Array, block: number): number {
    const value = links[block];
    if (value === undefined) throw new RangeError(`there is no block ${block}`);
    return value;
  }
}
