/** An nvidia-smi whose calls are timed: one that grows slow is a driver in trouble. */

import type { CallResult, NvidiaTool } from "./nvidia_smi.ts";

/** One call that was made. */
export interface TimedCall {
  /** What was asked, without the fields: "query-gpu", "topo", "nvlink", … */
  readonly call: string;
  readonly outcome: "finished" | "hung" | "not_started";
  readonly seconds: number;
}

/** Passes every call on, and tells of each that was really made. */
export class TimedNvidiaSmi implements NvidiaTool {
  readonly #inner: NvidiaTool;
  readonly #onCall: (call: TimedCall) => void;

  constructor(inner: NvidiaTool, onCall: (call: TimedCall) => void) {
    this.#inner = inner;
    this.#onCall = onCall;
  }

  get path(): string {
    return this.#inner.path;
  }

  async run(
    args: readonly string[],
    deadlineMs: number,
    signal: AbortSignal,
  ): Promise<CallResult> {
    const begunAt = performance.now();
    const result = await this.#inner.run(args, deadlineMs, signal);
    // Behind one that hangs nothing is started, and its time says nothing.
    if (result.kind !== "blocked") {
      const seconds = (performance.now() - begunAt) / 1_000;
      this.#onCall({ call: nameOf(args), outcome: result.kind, seconds });
    }
    return result;
  }

  async idle(): Promise<void> {
    await this.#inner.idle();
  }
}

function nameOf([first = ""]: readonly string[]): string {
  return first.replace(/^-+/, "").replace(/=.*$/, "");
}
