/** An nvidia-smi whose answers were written down, and the one that writes another's down. */

import type { CallResult, NvidiaTool } from "./nvidia_smi.ts";

/** One call and what came of it. */
export interface CapturedCall {
  readonly args: readonly string[];
  readonly result: CallResult;
}

/** Answers every call as the last one with the same arguments was answered. */
export class CapturedNvidiaSmi implements NvidiaTool {
  readonly path: string;
  readonly #answers: ReadonlyMap<string, CallResult>;

  constructor(path: string, calls: readonly CapturedCall[]) {
    this.path = path;
    this.#answers = new Map(calls.map(({ args, result }) => [args.join(" "), result]));
  }

  run(args: readonly string[], _deadlineMs: number, signal: AbortSignal): Promise<CallResult> {
    if (signal.aborted) return Promise.reject(signal.reason);
    return Promise.resolve(
      this.#answers.get(args.join(" ")) ?? {
        kind: "not_started",
        why: "failed",
        message: `nvidia-smi ${args.join(" ")} was not captured`,
      },
    );
  }

  idle(): Promise<void> {
    return Promise.resolve();
  }
}

/** Passes every call on and keeps it. */
export class RecordingNvidiaSmi implements NvidiaTool {
  readonly calls: CapturedCall[] = [];
  readonly #inner: NvidiaTool;

  constructor(inner: NvidiaTool) {
    this.#inner = inner;
  }

  get path(): string {
    return this.#inner.path;
  }

  async run(
    args: readonly string[],
    deadlineMs: number,
    signal: AbortSignal,
  ): Promise<CallResult> {
    const result = await this.#inner.run(args, deadlineMs, signal);
    this.calls.push({ args: [...args], result });
    return result;
  }

  async idle(): Promise<void> {
    await this.#inner.idle();
  }
}
