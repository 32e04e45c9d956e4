import assert from "node:assert/strict";
import fc from "fast-check";
import { Answer } from "./answer.ts";
import { decode, encode, END_OF_TEXT, inVocabulary, textOf } from "./tokenizer.ts";

Deno.test("decode() gives back what encode() was given, token by token too", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", maxLength: 200 }), (text) => {
      const ids = encode(text);
      assert.equal(decode(ids), text);
      assert.equal(ids.map(textOf).join(""), text);
      assert.ok(ids.every(inVocabulary));
    }),
    { numRuns: 500 },
  );
});

Deno.test("encode() is total: lone surrogates, control characters and huge words have tokens", () => {
  for (const text of ["\ud800", "\u0000\u0007", "x".repeat(10_000), "   \n\t  ", "🧵日本語é"]) {
    assert.ok(encode(text).length > 0, JSON.stringify(text));
  }
  assert.deepEqual(encode(""), []);
});

Deno.test("encode() fills runs with as many whole characters as go into four bytes", () => {
  for (
    const [text, runs] of [
      ["abcdefg", ["abcd", "efg"]],
      ["ééé", ["éé", "é"]],
      ["aéé", ["aé", "é"]],
      ["日本", ["日", "本"]],
      ["a日b", ["a日", "b"]],
      ["🧵🧵", ["🧵", "🧵"]],
    ] as const
  ) {
    assert.deepEqual(encode(text).map((id) => decode([id])), runs);
  }
});

Deno.test("encode() splits megabytes in the time of a few scheduling steps, whatever the script", () => {
  for (const letter of ["a", "é", "日"]) {
    const startedAt = performance.now();
    assert.ok(encode(letter.repeat(2 ** 20)).length > 0);
    // Some tens of milliseconds; encoding each character by itself took seconds.
    assert.ok(performance.now() - startedAt < 1_000, letter);
  }
});

Deno.test("encode() makes about one token of four bytes", () => {
  const text = "Whoever maintains infrastructure eventually discovers counterintuitive behaviour. ";
  const bytesPerToken = text.length / encode(text).length;
  assert.ok(bytesPerToken > 2.5 && bytesPerToken < 5, `${bytesPerToken}`);
});

Deno.test("decode() gives U+FFFD for bytes that are no text", () => {
  assert.equal(decode([0xff]), "\ufffd");
  assert.equal(decode([END_OF_TEXT]), "");
});

Deno.test("inVocabulary() refuses what is no token id", () => {
  for (const id of [-1, 1.5, NaN, Infinity, 2 ** 40]) assert.equal(inVocabulary(id), false);
});

Deno.test("an answer's text encodes to the answer's tokens, so that the next turn finds its blocks", () => {
  fc.assert(fc.property(fc.integer(), (seed) => {
    const answer = new Answer({ seed, opening: "This is a simulated engine.", naturalTokens: 80 });
    const tokens: number[] = [];
    for (let token = answer.next(false); token !== END_OF_TEXT; token = answer.next(false)) {
      tokens.push(token);
    }
    assert.equal(tokens.length, 80);
    assert.deepEqual(encode(decode(tokens)), tokens);
  }));
});

Deno.test("Answer goes on for ever when it is asked to, and ends with its opening when that is all", () => {
  const endless = new Answer({ seed: 1, opening: "{}", naturalTokens: 0 });
  const tokens = Array.from({ length: 500 }, () => endless.next(true));
  assert.ok(!tokens.includes(END_OF_TEXT));
  const exact = new Answer({ seed: 1, opening: "{}", naturalTokens: 0 });
  assert.equal(textOf(exact.next(false)), "{}");
  assert.equal(exact.next(false), END_OF_TEXT);
});
