/** Deterministic pseudo-random numbers: the same seed gives the same sequence on every machine. */

/** Mixes integers and strings into 32 bits; order matters. */
export function hash32(parts: readonly (number | string)[]): number {
  let hash = 0x811c9dc5;
  const add = (value: number): void => {
    hash = Math.imul(hash ^ value, 0x01000193);
    hash ^= hash >>> 15;
  };
  for (const part of parts) {
    if (typeof part === "number") {
      add(part | 0);
      add(Math.floor(part / 2 ** 32) | 0);
    } else {
      for (let index = 0; index < part.length; index += 1) add(part.charCodeAt(index));
      add(part.length);
    }
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** A generator of numbers in [0, 1) (mulberry32). */
export type Random = () => number;

/** Starts a sequence at `seed` (its low 32 bits). */
export function randomFrom(seed: number): Random {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** An integer in [low, high], both included. */
export function integerBetween(random: Random, low: number, high: number): number {
  return low + Math.floor(random() * (high - low + 1));
}
