/** For tests of parsers: real texts, spoilt. */
import fc from "fast-check";

/** Runs of a property about a parser: they are pure, so that ten thousand take a second. */
export const FUZZ_RUNS = { numRuns: 10_000 };

/** One of `texts` after some cuts, doublings, and insertions of `pieces`. */
export function mutated(texts: readonly string[], pieces: readonly string[]): fc.Arbitrary<string> {
  const edit = fc.tuple(fc.nat(), fc.nat(24), fc.constantFrom(...pieces));
  return fc.tuple(fc.constantFrom(...texts), fc.array(edit, { minLength: 1, maxLength: 8 }))
    .map(([text, edits]) =>
      edits.reduce((each, [at, cut, piece]) => {
        const from = at % (each.length + 1);
        return cut > 20
          ? each.slice(0, from) + each.slice(Math.max(0, from - cut * 8))
          : each.slice(0, from) + piece + each.slice(from + cut);
      }, text)
    );
}
