/** Why the clocks of a GPU are held down, from the bit mask `clocks_throttle_reasons.active`. */

/** HW slowdown, HW thermal slowdown, HW power brake: faults of cooling or power. */
const HARDWARE = 0x8n | 0x40n | 0x80n;

/**
 * Whether the hardware itself slows the GPU. The power cap (0x4) is normal under load and does not
 * count, nor does an unreadable mask.
 */
export function throttled(mask: string | undefined): boolean {
  return /^0x[0-9a-f]{1,16}$/i.test(mask ?? "") && (BigInt(mask ?? "0") & HARDWARE) !== 0n;
}
