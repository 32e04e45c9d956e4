import { deepEqual, equal, rejects } from "node:assert/strict";
import { type Follow, followTogether as followArriving } from "./follow_together.ts";

/** Of those that are there from the start, and no more. */
function followTogether<T>(follows: readonly Follow<T>[], signal: AbortSignal) {
  return followArriving<T>(async function* () {
    yield await Promise.resolve(follows);
  }, signal);
}

/** Gives what is put into it, until the signal aborts; says when it was let go. */
function source<T = string>(...first: readonly T[]) {
  const kept = [...first];
  let change = Promise.withResolvers<void>();
  const state = { ended: false };
  const wake = () => {
    change.resolve();
    change = Promise.withResolvers();
  };
  const follow: Follow<T> = async function* (signal) {
    signal.addEventListener("abort", wake, { once: true });
    try {
      while (!signal.aborted) {
        const next = kept.shift();
        if (next === undefined) await change.promise;
        else yield next;
      }
    } finally {
      state.ended = true;
    }
  };
  const put = (...more: readonly T[]) => {
    kept.push(...more);
    wake();
  };
  return { follow, put, state };
}

Deno.test("followTogether() gives the first of each in order, then whatever comes", async () => {
  const [head, server] = [source("head"), source("server")];
  const stop = new AbortController();
  const both = followTogether([head.follow, server.follow], stop.signal);
  const next = async () => (await both.next()).value;
  deepEqual([await next(), await next()], ["head", "server"]);
  const pending = next();
  head.put("head 2");
  equal(await pending, "head 2");
  server.put("server 2");
  equal(await next(), "server 2");
  const last = both.next();
  stop.abort();
  equal((await last).done, true);
  deepEqual([head.state.ended, server.state.ended], [true, true]);
});

Deno.test("followTogether() lets none that floods keep the others waiting", async () => {
  const flood = source(...Array.from({ length: 50 }, (_, index) => `flood ${index}`));
  const quiet = source("quiet 0", "quiet 1");
  const seen: string[] = [];
  for await (
    const line of followTogether([flood.follow, quiet.follow], new AbortController().signal)
  ) {
    seen.push(line);
    if (line === "quiet 1") break;
  }
  equal(seen.length <= 5, true, seen.join());
  deepEqual([flood.state.ended, quiet.state.ended], [true, true], "let go by who reads no further");
});

Deno.test("followTogether() ends once all have ended, and with the error of one that fails", async () => {
  const { signal } = new AbortController();
  const some: Follow<number> = async function* () {
    yield await Promise.resolve(1);
    yield 2;
  };
  const seen: number[] = [];
  for await (const each of followTogether([some, some], signal)) seen.push(each);
  deepEqual(seen.sort(), [1, 1, 2, 2]);
  deepEqual(await Array.fromAsync(followTogether([], signal)), []);
  const endless = source("a");
  const failing: Follow<string> = async function* () {
    yield await Promise.resolve("b");
    throw new Error("disk gone");
  };
  await rejects(
    Array.fromAsync(followTogether([endless.follow, failing], signal)),
    /disk gone/,
  );
  equal(endless.state.ended, true);
});

Deno.test("followTogether() takes in what arrives later, and waits for it when all others have ended", async () => {
  const arrivals = source<readonly Follow<string>[]>();
  const head = source("head");
  const stop = new AbortController();
  const lines = followArriving(arrivals.follow, stop.signal);
  const next = async () => (await lines.next()).value;
  const pending = next();
  arrivals.put([head.follow]);
  equal(await pending, "head");
  const waiting = next();
  const once: Follow<string> = async function* () {
    yield await Promise.resolve("worker");
  };
  arrivals.put([once]);
  equal(await waiting, "worker");
  const more = next();
  head.put("head 2");
  equal(await more, "head 2");
  const last = lines.next();
  stop.abort();
  equal((await last).done, true);
  deepEqual([arrivals.state.ended, head.state.ended], [true, true]);
});
