/** Tries again what may work the next time, with waits that grow, and gives up with words. */
import { delay } from "@heddle/common/task";
import { WeightsError } from "../../../core/weights/failure.ts";
import { Retriable } from "./http.ts";

const WAIT_MS_MAX = 60_000;

export interface Patience {
  readonly signal: AbortSignal;
  /** Tries in a row that bring nothing. */
  readonly tries: number;
  /** First wait in ms; it doubles. */
  readonly retryMs: number;
  /** Told before each wait. */
  readonly onWait: (why: string, waitMs: number) => void;
}

/** What `work` gives. Throws WeightsError: `work`'s own, or that it did not work in so many tries. */
export async function withPatience<T>(
  what: string,
  patience: Patience,
  work: () => Promise<T>,
): Promise<T> {
  const { tries, signal } = patience;
  for (let failures = 1;; failures++) {
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      const retriable = asRetriable(error);
      if (retriable === undefined) throw error;
      if (failures >= tries) throw gaveUp(what, retriable, failures);
      await waitAfter(retriable, failures, patience);
    }
  }
}

/** Waits before the next try. Throws the signal's reason. */
export async function waitAfter(
  error: Retriable,
  failures: number,
  { retryMs, onWait, signal }: Omit<Patience, "tries">,
): Promise<void> {
  const grown = Math.min(retryMs * 2 ** (failures - 1), WAIT_MS_MAX);
  // Connections that broke together must not come back together.
  const waitMs = Math.max(grown * (0.5 + Math.random() / 2), error.waitMs ?? 0);
  onWait(error.message, waitMs);
  await delay(waitMs, signal);
  signal.throwIfAborted();
}

/** The end of it, in words. */
export function gaveUp(what: string, error: Retriable, failures: number): WeightsError {
  return new WeightsError(
    error.limited ? "rate_limited" : "unreachable",
    `${what}: ${error.message}; given up after ${failures} tries that brought nothing`,
    { cause: error },
  );
}

/** A library that reads a body throws what the runtime throws when the connection breaks. */
function asRetriable(error: unknown): Retriable | undefined {
  if (error instanceof Retriable) return error;
  if (error instanceof WeightsError) return undefined;
  if (error instanceof TypeError || error instanceof SyntaxError) {
    return new Retriable(error.message);
  }
  return undefined;
}
