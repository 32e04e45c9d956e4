import { equal, ok } from "node:assert/strict";
import { estimatePromptTokens } from "./prompt_estimate.ts";

const estimate = (text: string) => estimatePromptTokens(new TextEncoder().encode(text));

Deno.test("estimatePromptTokens() counts text by its length", () => {
  equal(estimate(""), 0);
  equal(estimate("x".repeat(400)), 100);
  equal(estimate(";;;base64"), 3);
});

Deno.test("estimatePromptTokens() counts an attachment as one lump, however long it is", () => {
  const image = `"data:image/png;base64,${"A".repeat(2_000_000)}"`;
  const one = estimate(`[${image}]`);
  ok(one >= 1_000 && one < 1_100, `${one}`);
  const two = estimate(`[${image},${image},"${"x".repeat(400)}"]`);
  ok(two >= 2_100 && two < 2_200, `${two}`);
  ok(estimate(`"data:;base64,AAAA`) >= 1_000);
});
