/** Holds all connections together to a number of bytes per second. */
import { delay } from "@heddle/common/task";

/** How far it may run ahead, in ms: enough that a slow clock tick costs nothing. */
const AHEAD_MS = 100;

export class Pace {
  readonly #bytesPerMs: number | undefined;
  readonly #signal: AbortSignal;
  /** When all that was taken so far will have been due. */
  #dueAt = 0;

  constructor(bytesPerSecond: number | undefined, signal: AbortSignal) {
    this.#bytesPerMs = bytesPerSecond === undefined ? undefined : bytesPerSecond / 1_000;
    this.#signal = signal;
  }

  /** Resolves when `bytes` that were just received are due. */
  take(bytes: number): Promise<void> | undefined {
    if (this.#bytesPerMs === undefined) return undefined;
    const now = performance.now();
    this.#dueAt = Math.max(this.#dueAt, now) + bytes / this.#bytesPerMs;
    const waitMs = this.#dueAt - now - AHEAD_MS;
    return waitMs > 0 ? delay(waitMs, this.#signal) : undefined;
  }
}
