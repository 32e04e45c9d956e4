/**
 * A queue that is fair between tenants by tokens: start-time fair queueing. Each tenant has a clock
 * that its requests push on by what they cost; the tenant whose clock is earliest is next. A tenant
 * that comes back after a pause starts at the queue's own time, so that nobody saves up. Within a
 * tenant the first that came is the first that goes.
 */

export interface Queued {
  readonly tenant: string;
  /** What it is expected to cost; at least 1. */
  readonly tokens: number;
  /** What it keeps in memory while it waits. */
  readonly bytes: number;
}

interface Line<T> {
  /** In order of arrival; a set, since those that leave may stand anywhere. */
  readonly waiting: Set<T>;
  /** When its next request may start, in tokens. */
  start: number;
}

/** Tenants without a request that are remembered for what they owe. */
const TENANTS_KEPT_MAX = 10_000;

export class FairQueue<T extends Queued> {
  readonly #lines = new Map<string, Line<T>>();
  #time = 0;
  #size = 0;
  #bytes = 0;

  get size(): number {
    return this.#size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  push(item: T): void {
    const line = this.#line(item.tenant);
    if (line.waiting.size === 0) line.start = Math.max(line.start, this.#time);
    line.waiting.add(item);
    this.#size++;
    this.#bytes += item.bytes;
  }

  /** The one that is next; it stays. */
  peek(): T | undefined {
    const first = this.#first()?.waiting.values().next();
    return first?.done === false ? first.value : undefined;
  }

  /** Takes the one that is next and charges its tenant. */
  take(): T | undefined {
    const item = this.peek();
    if (item !== undefined) this.start(item);
    return item;
  }

  /** Takes `item`, wherever it stands, and charges its tenant. Also for one that never waited. */
  start(item: T): void {
    const line = this.#line(item.tenant);
    if (line.waiting.size === 0) line.start = Math.max(line.start, this.#time);
    // Time goes on also while nobody waits: what was idle capacity is nobody's debt.
    this.#time = Math.max(this.#time, line.start);
    this.remove(item);
    line.start += item.tokens;
  }

  /** Lets go of one that does not want to wait any more. False when it is not here. */
  remove(item: T): boolean {
    const line = this.#lines.get(item.tenant);
    if (line === undefined || !line.waiting.delete(item)) return false;
    this.#size--;
    this.#bytes -= item.bytes;
    return true;
  }

  /** It cost `tokens` more, or less, than it was charged. */
  settle(tenant: string, tokens: number): void {
    const line = this.#lines.get(tenant);
    if (line !== undefined) line.start += tokens;
  }

  #first(): Line<T> | undefined {
    let first: Line<T> | undefined;
    for (const line of this.#lines.values()) {
      if (line.waiting.size > 0 && (first === undefined || line.start < first.start)) first = line;
    }
    return first;
  }

  #line(tenant: string): Line<T> {
    const known = this.#lines.get(tenant);
    if (known !== undefined) return known;
    if (this.#lines.size >= TENANTS_KEPT_MAX) this.#forget();
    const line: Line<T> = { waiting: new Set(), start: this.#time };
    this.#lines.set(tenant, line);
    return line;
  }

  /** Who waits for nothing and owes nothing is as good as new; if all owe, the one that owes least. */
  #forget(): void {
    let least: [string, number] | undefined;
    for (const [tenant, { waiting, start }] of this.#lines) {
      if (waiting.size > 0) continue;
      if (start <= this.#time) this.#lines.delete(tenant);
      else if (least === undefined || start < least[1]) least = [tenant, start];
    }
    if (this.#lines.size >= TENANTS_KEPT_MAX && least !== undefined) this.#lines.delete(least[0]);
  }
}
