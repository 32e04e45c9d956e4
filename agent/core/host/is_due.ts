/**
 * Whether a reading made at `at` is older than `ageMs`, or was never made. A clock that was set back
 * makes everything due, or old values would stand until it has caught up.
 */
export function isDue(at: number | undefined, ageMs: number, now: number): boolean {
  return at === undefined || now - at >= ageMs || now < at;
}
