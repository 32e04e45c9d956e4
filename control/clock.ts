/** The clock that control decides by. */
import type { Clock } from "./loop.ts";

/**
 * Starts at the machine's time and then runs by itself: setting the machine's clock must not end
 * leases or declare nodes lost.
 */
export const MONOTONIC_CLOCK: Clock = {
  now: () => performance.timeOrigin + performance.now(),
  setTimer(ms, wake) {
    const timer = setTimeout(wake, ms);
    return () => clearTimeout(timer);
  },
};
