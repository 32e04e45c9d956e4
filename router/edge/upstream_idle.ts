/** Connections that wait for their next request, newest used first, each for a bounded time. */

/** What is kept: it can say whether it still lives, and be closed. */
export interface Keepable {
  readonly alive: boolean;
  destroy(): void;
}

interface Kept<C> {
  readonly connection: C;
  readonly expiresAt: number;
}

export class IdleConnections<C extends Keepable = Keepable> {
  readonly #keepMsMax: number;
  readonly #lists = new Map<string, Kept<C>[]>();
  #size = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(keepMsMax: number) {
    this.#keepMsMax = keepMsMax;
  }

  get size(): number {
    return this.#size;
  }

  sizeOf(key: string): number {
    return this.#lists.get(key)?.length ?? 0;
  }

  /** Keeps `connection` for `keepMs`, or for as long as any may be kept. */
  add(key: string, connection: C, keepMs: number): void {
    const expiresAt = performance.now() + Math.min(keepMs, this.#keepMsMax);
    const list = this.#lists.get(key);
    if (list === undefined) this.#lists.set(key, [{ connection, expiresAt }]);
    else list.push({ connection, expiresAt });
    this.#size++;
    this.#timer ??= setTimeout(() => this.#sweep(), this.#keepMsMax);
  }

  /** The connection used last that is still good: it is the least likely to be stale. */
  take(key: string): C | undefined {
    const now = performance.now();
    for (;;) {
      const kept = this.#lists.get(key)?.at(-1);
      if (kept === undefined) return undefined;
      this.remove(key, kept.connection);
      if (kept.connection.alive && kept.expiresAt > now) return kept.connection;
      kept.connection.destroy();
    }
  }

  remove(key: string, connection: C): void {
    const list = this.#lists.get(key);
    const index = list?.findLastIndex((kept) => kept.connection === connection) ?? -1;
    if (list === undefined || index < 0) return;
    list.splice(index, 1);
    this.#size--;
    if (list.length === 0) this.#lists.delete(key);
    if (this.#size === 0) {
      clearTimeout(this.#timer);
      this.#timer = undefined;
    }
  }

  drop(key: string): void {
    for (const { connection } of [...this.#lists.get(key) ?? []]) {
      this.remove(key, connection);
      connection.destroy();
    }
  }

  dropAll(): void {
    for (const key of [...this.#lists.keys()]) this.drop(key);
  }

  #sweep(): void {
    this.#timer = undefined;
    const now = performance.now();
    let next = Infinity;
    for (const [key, list] of [...this.#lists]) {
      for (const { connection, expiresAt } of [...list]) {
        if (expiresAt <= now) {
          this.remove(key, connection);
          connection.destroy();
        } else next = Math.min(next, expiresAt);
      }
    }
    if (next < Infinity) this.#timer = setTimeout(() => this.#sweep(), Math.ceil(next - now));
  }
}
