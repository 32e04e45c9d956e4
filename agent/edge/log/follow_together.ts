/** Several things that go on at once, read as one. */

/** Begins to give batches, until the signal aborts. */
export type Follow<T> = (signal: AbortSignal) => AsyncGenerator<T>;

/**
 * The first batch of each, in their order, then batches as they come, until all have ended. One that
 * fails ends all, with its error; so does whoever reads no further. Of each, one batch at most waits
 * to be read, and one that floods keeps none of the others waiting.
 */
export async function* followTogether<T>(
  follows: readonly Follow<T>[],
  signal: AbortSignal,
): AsyncGenerator<T> {
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  const open = follows.map((follow) => follow(either));
  // In the order in which they were asked: of several that have come, who waited longest is next.
  const asked = new Map<AsyncGenerator<T>, Promise<Came<T>>>();
  const ask = (from: AsyncGenerator<T>) => {
    const came = from.next().then((result) => ({ from, result }));
    // It may fail while nobody awaits it; the next race tells.
    came.catch(() => {});
    asked.delete(from);
    asked.set(from, came);
  };
  try {
    for (const from of open) {
      const first = await from.next();
      if (first.done !== true) yield first.value;
    }
    open.forEach(ask);
    while (asked.size > 0) {
      const { from, result } = await Promise.race(asked.values());
      if (result.done === true) {
        asked.delete(from);
        continue;
      }
      ask(from);
      yield result.value;
    }
  } finally {
    stop.abort();
    await Promise.allSettled(open.map((from) => from.return(undefined)));
  }
}

interface Came<T> {
  readonly from: AsyncGenerator<T>;
  readonly result: IteratorResult<T>;
}
