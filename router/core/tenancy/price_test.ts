import assert from "node:assert/strict";
import { costMicro, isFree, type Price, PRICE_BY_DEFAULT } from "./price.ts";

const TOKENS: Price = {
  kind: "tokens",
  promptMicro: 1_000_000,
  cachedMicro: 100_000,
  completionMicro: 3_000_000,
};
const DONE = { engineMs: 1_500, gpus: 4 };

Deno.test("costMicro() pays cached tokens as cached ones, and reasoning as a part of the answer", () => {
  const usage = { promptTokens: 100, cachedTokens: 80, completionTokens: 10, reasoningTokens: 6 };
  assert.equal(costMicro(TOKENS, { usage, ...DONE }), 20 + 8 + 30);
  const odd = { promptTokens: 5, cachedTokens: 9, completionTokens: 0 };
  assert.equal(costMicro(TOKENS, { usage: odd, ...DONE }), 1);
});

Deno.test("costMicro() pays by the request, by the GPU-second, or nothing", () => {
  const usage = { promptTokens: 1, completionTokens: 1 };
  assert.equal(costMicro(PRICE_BY_DEFAULT, { usage, ...DONE }), 1_000_000);
  assert.equal(costMicro({ kind: "gpu_second", micro: 1_000 }, { usage, ...DONE }), 6_000);
  const free: Price = { kind: "tokens", promptMicro: 0, cachedMicro: 0, completionMicro: 0 };
  assert.equal(costMicro(free, { usage, ...DONE }), 0);
  assert.ok(isFree(free) && isFree({ kind: "request", micro: 0 }) && !isFree(TOKENS));
});
