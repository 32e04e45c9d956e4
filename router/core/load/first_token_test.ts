import { ok } from "node:assert/strict";
import { type FirstTokens, lineOf, measured, NO_FIRST_TOKENS } from "./first_token.ts";

function learnt(count: number, ms: (tokens: number) => number): FirstTokens {
  let sums = NO_FIRST_TOKENS;
  for (let index = 0; index < count; index++) {
    const tokens = 100 + (index * 337) % 3_000;
    sums = measured(sums, { tokens, ms: ms(tokens) }, index);
  }
  return sums;
}

function near(value: number, want: number, share = 0.15): void {
  ok(Math.abs(value - want) <= want * share, `${value} is not near ${want}`);
}

Deno.test("lineOf() learns what a token and what a step costs", () => {
  const { constantMs, msPerToken } = lineOf(learnt(200, (tokens) => 80 + tokens * 0.4), 200);
  near(constantMs, 80, 0.4);
  near(msPerToken, 0.4);
});

Deno.test("lineOf() begins with what is usual, and goes back to it when nothing is measured", () => {
  const usual = { constantMs: 20, msPerToken: 0.05 };
  near(lineOf(NO_FIRST_TOKENS, 0, usual).msPerToken, 0.05, 0.01);
  near(lineOf(NO_FIRST_TOKENS, 0, usual).constantMs, 20, 0.01);
  const slow = learnt(100, (tokens) => 500 + tokens * 2);
  ok(lineOf(slow, 100, usual).msPerToken > 1.5);
  near(lineOf(slow, 1_000_000, usual).msPerToken, 0.05);
});

Deno.test("lineOf() never says that work takes less than no time", () => {
  const odd = learnt(50, (tokens) => Math.max(0, 1_000 - tokens));
  const { constantMs, msPerToken } = lineOf(odd, 50);
  ok(constantMs >= 0 && msPerToken >= 0);
  const same = lineOf(measured(NO_FIRST_TOKENS, { tokens: 0, ms: 0 }, 0), 0);
  ok(Number.isFinite(same.constantMs) && Number.isFinite(same.msPerToken));
});
