/** Many runs, one after the other; the first that fails ends them. */
import { liveThrough } from "../../control/core/testing/life/outcome.ts";
import type { Violation } from "../../control/core/testing/invariants.ts";

export interface RunOptions {
  readonly firstSeed: number;
  readonly runs: number;
  /** Largest cluster. */
  readonly nodesMax: number;
  /** No run begins after so many ms. @default without limit */
  readonly budgetMs?: number;
  /** After each run that went well. */
  readonly progress?: (done: number) => void;
}

export type Outcome =
  /** `trace` is of the last run. */
  | { readonly kind: "well"; readonly runs: number; readonly trace: readonly string[] }
  | {
    readonly kind: "failed";
    readonly seed: number;
    readonly violations: readonly Violation[];
    readonly trace: readonly string[];
    /** Runs that went well before. */
    readonly runs: number;
  };

export function runMany(options: RunOptions): Outcome {
  const { firstSeed, runs, nodesMax, budgetMs = Infinity, progress } = options;
  const began = performance.now();
  let last: readonly string[] = [];
  for (let done = 0; done < runs; done++) {
    if (performance.now() - began > budgetMs) return { kind: "well", runs: done, trace: last };
    const seed = firstSeed + done;
    const { violations, trace } = liveThrough(seed, nodesMax);
    if (violations.length > 0) return { kind: "failed", seed, violations, trace, runs: done };
    last = trace;
    progress?.(done + 1);
  }
  return { kind: "well", runs, trace: last };
}
