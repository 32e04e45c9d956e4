/** Numbers that repeat for a seed, so that two measurements ask the same. */

/** In [0, 1). */
export type Random = () => number;

/** Of one request; `parts` tell requests apart. FNV-1a over them starts a SplitMix32. */
export function randomOf(...parts: readonly (string | number)[]): Random {
  let state = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(parts.join("\u0000"))) {
    state = Math.imul(state ^ byte, 0x01000193);
  }
  return () => {
    state = (state + 0x9e3779b9) | 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
  };
}

/** A whole number of [low, high], as likely to be within any octave as within any other. */
export function logUniform(random: Random, [low, high]: readonly [number, number]): number {
  return Math.round(Math.exp(Math.log(low) + random() * (Math.log(high) - Math.log(low))));
}
