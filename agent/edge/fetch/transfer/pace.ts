/** Holds all connections together to a number of bytes per second. */
import { delay } from "@heddle/common/task";

/** How far it may run ahead, in ms: enough that a slow clock tick costs nothing. */
const AHEAD_MS = 100;

export interface PaceClock {
  /** In ms, from any beginning. */
  now(): number;
  wait(ms: number, signal: AbortSignal): Promise<void>;
}

const REAL: PaceClock = { now: () => performance.now(), wait: delay };

export class Pace {
  readonly #bytesPerMs: number | undefined;
  readonly #signal: AbortSignal;
  readonly #clock: PaceClock;
  /** When all that was taken so far will have been due. */
  #dueAt = 0;

  constructor(bytesPerSecond: number | undefined, signal: AbortSignal, clock = REAL) {
    this.#bytesPerMs = bytesPerSecond === undefined ? undefined : bytesPerSecond / 1_000;
    this.#signal = signal;
    this.#clock = clock;
  }

  /** Resolves when `bytes` that were just received are due. */
  take(bytes: number): Promise<void> | undefined {
    if (this.#bytesPerMs === undefined) return undefined;
    const now = this.#clock.now();
    this.#dueAt = Math.max(this.#dueAt, now) + bytes / this.#bytesPerMs;
    const waitMs = this.#dueAt - now - AHEAD_MS;
    return waitMs > 0 ? this.#clock.wait(waitMs, this.#signal) : undefined;
  }
}
