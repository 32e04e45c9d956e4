/**
 * Places for requests at one time, as leases: each has its holder's id, and is given back once
 * however often its holder ends.
 */
export class Slots {
  readonly #held = new Set<string>();
  #limit: number;
  #share: number;

  constructor(limit: number, share = limit) {
    this.#limit = limit;
    this.#share = share;
  }

  get limit(): number {
    return this.#limit;
  }

  get share(): number {
    return this.#share;
  }

  get used(): number {
    return this.#held.size;
  }

  /** The whole limit until control says more, unless it is shared already. */
  change(limit: number): void {
    this.#share = this.#share === this.#limit ? limit : Math.min(this.#share, limit);
    this.#limit = limit;
  }

  grant(share: number): void {
    this.#share = share;
  }

  /** Places that can be taken now. After a limit was lowered, fewer than none may be left. */
  get left(): number {
    return Math.max(0, Math.floor(Math.min(this.#share, this.#limit)) - this.#held.size);
  }

  take(id: string): void {
    this.#held.add(id);
  }

  /** False when it was given back before. */
  release(id: string): boolean {
    return this.#held.delete(id);
  }
}
