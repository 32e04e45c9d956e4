import { deepEqual, equal } from "node:assert/strict";
import { Pace } from "./pace.ts";

const never = new AbortController().signal;

/** A clock that stands until a wait moves it, and what was waited. */
function clockAt(start: number) {
  const waits: number[] = [];
  let now = start;
  return {
    waits,
    pass: (ms: number) => void (now += ms),
    now: () => now,
    wait: (ms: number) => {
      waits.push(ms);
      now += ms;
      return Promise.resolve();
    },
  };
}

Deno.test("take() lets bytes through at the rate that was set, whoever receives them", async () => {
  const clock = clockAt(1_000);
  const pace = new Pace(1_000_000, never, clock);
  for (let part = 0; part < 100; part++) await pace.take(50_000);
  // 5 MB at 1 MB/s are 5 s, of which 100 ms are run ahead.
  equal(clock.now() - 1_000, 4_900);
  deepEqual(new Set(clock.waits), new Set([50]));
});

Deno.test("take() waits for nothing that is due, and saves nothing up while nobody receives", () => {
  const clock = clockAt(0);
  const pace = new Pace(1_000_000, never, clock);
  equal(pace.take(100_000), undefined, "as far as it may run ahead");
  clock.pass(60_000);
  equal(pace.take(100_000), undefined);
  pace.take(250_000);
  deepEqual(clock.waits, [250]);
});

Deno.test("take() without a limit waits never", () => {
  equal(new Pace(undefined, never, clockAt(0)).take(2 ** 50), undefined);
});
