/** Carries out the search of ramp.ts against an endpoint. */
import type { BenchTarget } from "./ask.ts";
import type { Level, Slo } from "./measured.ts";
import { nextStep, type RampLimits, type RampResult } from "./ramp.ts";
import { runLevel } from "./run_level.ts";
import type { Shape } from "./shape.ts";

/** A level in which fewer requests end than this many rounds tells of its edges alone. */
const ROUNDS_MIN = 3;
/** A level is never longer than this many times what was asked for. */
const STRETCH_MAX = 10;

export interface Search extends RampLimits {
  readonly target: BenchTarget;
  readonly shape: Shape;
  readonly seed: number;
  readonly slo: Slo;
  /** Of one level; longer where requests take longer. */
  readonly seconds: number;
  readonly signal: AbortSignal;
  readonly onLevel: (level: Level) => void;
}

export interface Found extends RampResult {
  readonly levels: readonly Level[];
}

/** Rejects with the signal's reason when it aborts. */
export async function search(options: Search): Promise<Found> {
  const levels: Level[] = [];
  let { seconds } = options;
  let firstIndex = 0;
  for (;;) {
    const step = nextStep(levels, options);
    if (step.kind === "done") return { ...step.result, levels };
    const { concurrency } = step;
    const { level, sent } = await runLevel({ ...options, concurrency, seconds, firstIndex });
    options.signal.throwIfAborted();
    firstIndex += sent;
    const nothingEnded = level.answered + level.failed === 0;
    if (nothingEnded && seconds < STRETCH_MAX * options.seconds) {
      seconds *= 2;
      continue;
    }
    levels.push(level);
    options.onLevel(level);
    const rounds = ROUNDS_MIN * (level.durationMs.p90 ?? 0) / 1_000;
    seconds = Math.min(Math.max(seconds, rounds), STRETCH_MAX * options.seconds);
  }
}
