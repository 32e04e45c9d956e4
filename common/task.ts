/** Promises that nobody awaits, run so that their failure is loud. */
import { logger } from "./log.ts";

/**
 * Runs `work` beside its caller. A rejection is a bug: it is logged and ends the process, so that
 * the supervisor starts it again. Aborts through `signal` are not failures.
 */
export function spawnTask(name: string, work: () => Promise<void>, signal?: AbortSignal): void {
  work().catch((error: unknown) => {
    if (signal?.aborted === true) return;
    logger("task").error(`${name} failed`, { error });
    // Thrown outside of any promise chain so that nothing can swallow it.
    queueMicrotask(() => {
      throw error;
    });
  });
}

/** Waits `ms`, or less: resolves early when `signal` aborts. Never rejects. */
export function delay(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done);
  });
}
