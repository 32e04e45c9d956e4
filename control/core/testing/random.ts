/** Chance that repeats: the same seed gives the same run. And how often it is tried. */

/**
 * How many cases a property is tried with: `normal`, or as many as HEDDLE_TEST_CASES says where that
 * is more. Throws for what is no number.
 */
export function casesOf(normal: number): { readonly numRuns: number } {
  const wanted = Deno.env.get("HEDDLE_TEST_CASES") ?? "";
  if (!/^\d*$/.test(wanted)) throw new TypeError(`HEDDLE_TEST_CASES is ${wanted}: want a number`);
  return { numRuns: Math.max(normal, Number(wanted)) };
}

export interface Random {
  /** A number of [0, 1). */
  next(): number;
  /** A whole number from `low` to `high`, both included. */
  int(low: number, high: number): number;
  pick<T>(from: readonly T[]): T;
  chance(probability: number): boolean;
}

/** mulberry32: 32 bits of state, good enough to shuffle events. */
export function randomOf(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000;
  };
  const int = (low: number, high: number) => low + Math.floor(next() * (high - low + 1));
  return {
    next,
    int,
    pick: <T>(from: readonly T[]): T => {
      const index = int(0, from.length - 1);
      for (const each of from.slice(index)) return each;
      throw new Error("cannot pick from an empty list");
    },
    chance: (probability) => next() < probability,
  };
}
