/** Exponential backoff whose jitter is a hash, so that the same history gives the same delay. */

export interface BackoffBounds {
  readonly firstMs: number;
  readonly maxMs: number;
}

/** FNV-1a, 32 bits: spreads ids evenly enough for jitter and tie-breaks; not for security. */
export function hash32(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193) >>> 0;
  }
  return hash;
}

/**
 * Milliseconds to wait before try `attempt` (1 is the first retry): doubled each time, at most
 * `maxMs`, less up to half by hash(id, attempt) so that a fleet does not move in step.
 */
export function backoffMs(id: string, attempt: number, bounds: BackoffBounds): number {
  const full = Math.min(bounds.firstMs * 2 ** Math.min(attempt - 1, 30), bounds.maxMs);
  const fraction = hash32(`${id}#${attempt}`) / 0x1_0000_0000;
  return Math.round(full * (1 - fraction / 2));
}
