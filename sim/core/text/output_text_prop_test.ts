import assert from "node:assert/strict";
import fc from "fast-check";
import { OutputText } from "./output_text.ts";

const pieces = fc.array(fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 4 }), {
  maxLength: 20,
});
const stops = fc.array(
  fc.string({ unit: fc.constantFrom("a", "b", "c"), minLength: 1, maxLength: 4 }),
  { minLength: 1, maxLength: 3 },
);

/** What is visible after feeding `texts` until the end or a stop. */
function visible(texts: readonly string[], stop: readonly string[], includeStop: boolean): string {
  const output = new OutputText({ stop, includeStop });
  let text = "";
  for (const piece of texts) {
    const delta = output.push(piece);
    text += delta.text;
    if (delta.stoppedBy !== undefined) return text;
    // Whatever is shown must never have to be taken back.
    assert.ok(stop.every((one) => !text.includes(one)));
  }
  return text + output.flush();
}

Deno.test("OutputText shows exactly what comes before the first stop string", () => {
  fc.assert(
    fc.property(pieces, stops, (texts, stop) => {
      const shown = visible(texts, stop, false);
      let whole = "";
      for (const piece of texts) {
        whole += piece;
        const first = Math.min(...stop.map((one) => whole.indexOf(one)).filter((at) => at >= 0));
        if (first === Infinity) continue;
        assert.equal(shown, whole.slice(0, first));
        return;
      }
      assert.equal(shown, whole);
    }),
    { numRuns: 1_000 },
  );
});

Deno.test("OutputText can include the stop string, and shows everything without one", () => {
  assert.equal(visible(["ab", "cab"], ["ca"], true), "abca");
  assert.equal(visible(["ab", "cab"], [], false), "abcab");
});
