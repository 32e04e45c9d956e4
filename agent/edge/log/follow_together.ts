/** Several things that go on at once, read as one. */

/** Begins to give batches, until the signal aborts. */
export type Follow<T> = (signal: AbortSignal) => AsyncGenerator<T>;

/**
 * What `arrivals` gives, read together. Each time it gives some: the first batch of each of them, in
 * their order; then batches of all as they come, until all have ended and no more will arrive. One that
 * fails ends all, with its error; so does whoever reads no further. Of each, one batch at most waits
 * to be read, and one that floods keeps none of the others waiting.
 */
export async function* followTogether<T>(
  arrivals: Follow<readonly Follow<T>[]>,
  signal: AbortSignal,
): AsyncGenerator<T> {
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  const arriving = arrivals(either);
  const open: AsyncGenerator<T>[] = [];
  // In the order in which they were asked: of several that have come, who waited longest is next.
  const asked = new Map<AsyncGenerator<unknown>, Promise<Came<T>>>();
  const keep = (from: AsyncGenerator<unknown>, came: Promise<Came<T>>) => {
    // It may fail while nobody awaits it; the next race tells.
    came.catch(() => {});
    asked.delete(from);
    asked.set(from, came);
  };
  const ask = (from: AsyncGenerator<T>) =>
    keep(from, from.next().then((result) => ({ kind: "batch", from, result })));
  const askForMore = () =>
    keep(arriving, arriving.next().then((result) => ({ kind: "arrived", from: arriving, result })));
  try {
    askForMore();
    while (asked.size > 0) {
      const came = await Promise.race(asked.values());
      asked.delete(came.from);
      if (came.result.done === true) continue;
      if (came.kind === "batch") {
        ask(came.from);
        yield came.result.value;
        continue;
      }
      const arrived = came.result.value.map((follow) => follow(either));
      open.push(...arrived);
      for (const from of arrived) {
        const first = await from.next();
        if (first.done !== true) yield first.value;
      }
      arrived.forEach(ask);
      askForMore();
    }
  } finally {
    stop.abort();
    await Promise.allSettled([arriving, ...open].map((from) => from.return(undefined)));
  }
}

type Came<T> =
  | {
    readonly kind: "batch";
    readonly from: AsyncGenerator<T>;
    readonly result: IteratorResult<T>;
  }
  | {
    readonly kind: "arrived";
    readonly from: AsyncGenerator<readonly Follow<T>[]>;
    readonly result: IteratorResult<readonly Follow<T>[]>;
  };
