import { deepEqual } from "node:assert/strict";
import { leaseClock } from "./lease_clock.ts";

Deno.test("leaseClock() counts the time that a machine slept, and none that its clock was set back", () => {
  let monotonic = 1_000;
  let day = 500_000;
  const clock = leaseClock(() => monotonic, () => day);
  const after = (monotonicMs: number, dayMs: number) => {
    monotonic += monotonicMs;
    day += dayMs;
    return clock.now();
  };
  deepEqual([
    after(0, 0),
    after(100, 100),
    after(100.4, 101),
    after(10, 60_010),
    after(10, -3_599_990),
    after(10, 10),
    after(10, 5_010),
  ], [1_000, 1_100, 1_200.4, 61_210.4, 61_220.4, 61_230.4, 66_240.4]);
});
