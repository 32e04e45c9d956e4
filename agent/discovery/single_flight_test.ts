import { equal, rejects } from "node:assert/strict";
import { SingleFlight } from "./single_flight.ts";

const never = new AbortController().signal;
const LONG_MS = 60_000;

Deno.test("within() joins work that runs, and starts it again once it has ended", async () => {
  const flight = new SingleFlight();
  const gate = Promise.withResolvers<void>();
  let starts = 0;
  const work = async (): Promise<void> => {
    starts += 1;
    await gate.promise;
  };
  const both = Promise.all([
    flight.within(LONG_MS, never, work),
    flight.within(LONG_MS, never, work),
  ]);
  equal(await flight.within(0, never, work), false);
  gate.resolve();
  equal((await both).join(), "true,true");
  equal(starts, 1);
  equal(await flight.within(LONG_MS, never, work), true);
  equal(starts, 2);
});

Deno.test("within() does not end by another caller's signal", async () => {
  const flight = new SingleFlight();
  const first = new AbortController();
  const untilAborted = (signal: AbortSignal): () => Promise<void> => () =>
    new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  const starter = flight.within(LONG_MS, first.signal, untilAborted(first.signal));
  let own = 0;
  const joined = flight.within(LONG_MS, never, () => {
    own += 1;
    return Promise.resolve();
  });
  const failed = rejects(starter, /stream lost/);
  first.abort(new Error("stream lost"));
  await failed;
  equal(await joined, true);
  equal(own, 1);
});

Deno.test("within() rejects when its own signal aborts, and leaves the work running", async () => {
  const flight = new SingleFlight();
  const gate = Promise.withResolvers<void>();
  const controller = new AbortController();
  const waiting = flight.within(LONG_MS, controller.signal, () => gate.promise);
  controller.abort(new Error("stop"));
  await rejects(waiting, /stop/);
  gate.resolve();
  equal(await flight.within(LONG_MS, never, () => Promise.resolve()), true);
});
