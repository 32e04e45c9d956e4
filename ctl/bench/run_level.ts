/** Keeps so many requests under way for so long, and measures what ended in that time. */
import { ask, type BenchTarget } from "./ask.ts";
import { type Answered, type Level, levelOf, type Slo } from "./measured.ts";
import type { Shape } from "./shape.ts";

/** A new load first has to fill the batch and the caches; that part of the time does not count. */
const WARM_UP = 0.25;

export interface Load {
  readonly target: BenchTarget;
  readonly shape: Shape;
  readonly seed: number;
  readonly slo: Slo;
  readonly concurrency: number;
  readonly seconds: number;
  /** Number of the first request; no two levels send the same, or a cache would answer for it. */
  readonly firstIndex: number;
  readonly signal: AbortSignal;
}

/** Resolves with the level and the number of requests that were sent; leaves nothing running. */
export async function runLevel(load: Load): Promise<{ level: Level; sent: number }> {
  const over = new AbortController();
  const signal = AbortSignal.any([load.signal, over.signal]);
  const countFrom = performance.now() + WARM_UP * load.seconds * 1_000;
  const timer = setTimeout(() => over.abort(), (1 + WARM_UP) * load.seconds * 1_000);
  const answers: Answered[] = [];
  let sent = 0;
  const client = async () => {
    while (!signal.aborted) {
      const request = load.shape.request(load.seed, load.firstIndex + sent++);
      const answer = await ask(load.target, request, signal);
      if (!signal.aborted && performance.now() >= countFrom) answers.push(answer);
      // What is refused at once must not become a flood.
      if (answer.error !== undefined) await pause(signal);
    }
  };
  try {
    await Promise.all(Array.from({ length: load.concurrency }, client));
  } finally {
    clearTimeout(timer);
  }
  const { concurrency, seconds } = load;
  return { level: levelOf(answers, { concurrency, seconds }, load.slo), sent };
}

const PAUSE_MS = 200;

function pause(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, PAUSE_MS);
    signal.addEventListener("abort", end);
    if (signal.aborted) end();
  });
}
