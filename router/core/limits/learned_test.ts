import assert from "node:assert/strict";
import { Learned } from "./learned.ts";

Deno.test("an answer is reserved as the request bounds it, until its key's answers are known", () => {
  const learned = new Learned();
  assert.equal(learned.answerTokens("k", "m", 16), 16);
  assert.equal(learned.answerTokens("k", "m", undefined), 512);
  assert.equal(learned.answerTokens("k", "m", 1_000_000), 8_192);
  for (let n = 1; n <= 40; n++) learned.answered("k", "m", n);
  // Of the last 32, from 9 to 40, the 95th percentile.
  assert.equal(learned.answerTokens("k", "m", 4_096), 39);
  assert.equal(learned.answerTokens("k", "m", undefined), 39);
  assert.equal(learned.answerTokens("k", "m", 8), 8);
  assert.equal(learned.answerTokens("k", "other", undefined), 512);
  assert.equal(learned.answerTokens("other", "m", undefined), 512);
});

Deno.test("a prompt's estimate follows what engines say of a model's prompts", () => {
  const learned = new Learned();
  assert.equal(learned.promptTokens("m", 100), 100);
  learned.prompted("m", 100, 150);
  assert.equal(learned.promptTokens("m", 100), 150);
  for (let n = 0; n < 100; n++) learned.prompted("m", 100, 80);
  assert.equal(learned.promptTokens("m", 100), 80);
  assert.equal(learned.promptTokens("other", 100), 100);
  learned.prompted("m", 0, 5);
  learned.prompted("m", 5, 0);
  assert.equal(learned.promptTokens("m", 0), 1);
});

Deno.test("only so many keys are remembered, those used last", () => {
  const learned = new Learned();
  for (let n = 0; n <= 20_000; n++) learned.answered(`k${n}`, "m", 7);
  assert.equal(learned.answerTokens("k0", "m", undefined), 512);
  assert.equal(learned.answerTokens("k20000", "m", undefined), 7);
});
