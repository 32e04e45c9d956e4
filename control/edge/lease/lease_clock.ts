/**
 * The clock that a lease is measured by. The monotonic clock stands still while its machine is
 * suspended, and the database's does not: a control that wakes up would still trust a lease that
 * another one has long taken. Setting the machine's clock back must not lengthen a lease either. So
 * both are read, and the one that ran further counts.
 */

/** Differences below this are rounding, not a machine that slept. */
const JUMP_MS = 50;

export interface LeaseClock {
  /** Milliseconds from no particular time; never goes back. */
  now(): number;
}

/** Made from a monotonic clock and one that shows the time of day. */
export function leaseClock(monotonic: () => number, timeOfDay: () => number): LeaseClock {
  let sleptMs = 0;
  let apartMs = timeOfDay() - monotonic();
  return {
    now() {
      const at = monotonic();
      const apart = timeOfDay() - at;
      if (apart - apartMs > JUMP_MS) sleptMs += apart - apartMs;
      apartMs = apart;
      return at + sleptMs;
    },
  };
}
