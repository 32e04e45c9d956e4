/**
 * Error counters of RDMA ports. They saturate instead of wrapping, so only what was added since the
 * last reading says anything, and a counter at its maximum says nothing any more. A link that went
 * down is unambiguous; the others are told and not judged.
 */

/** Counters that tell of a bad link, with the value at which older hardware's stop. */
export const LINK_COUNTERS: Readonly<Record<string, number>> = {
  link_downed: 255,
  link_error_recovery: 255,
  local_link_integrity_errors: 15,
  excessive_buffer_overrun_errors: 15,
  symbol_error: 65_535,
  port_rcv_errors: 65_535,
};

/** Values by counter; a counter that cannot be read is not among them. */
export type CounterReading = ReadonlyMap<string, number>;

/** The number in a counter's file; undefined for `N/A (no PMA)` and the like. */
export function parseCounter(text: string | undefined): number | undefined {
  return /^\d{1,20}$/.test(text ?? "") ? Number(text) : undefined;
}

/**
 * What was added between two readings, for counters that rose. A counter that fell was reset and
 * says nothing; one that stopped at its maximum may have risen further.
 */
export function counterRises(
  earlier: CounterReading,
  later: CounterReading,
): ReadonlyMap<string, number> {
  const rises = new Map<string, number>();
  for (const [name, value] of later) {
    const before = earlier.get(name);
    if (before !== undefined && value > before) rises.set(name, value - before);
  }
  return rises;
}

/** Whether a counter stands at its maximum, where it tells nothing more. */
export function saturated(name: string, value: number): boolean {
  return Object.hasOwn(LINK_COUNTERS, name) && value === LINK_COUNTERS[name];
}
