import { equal, ok } from "node:assert/strict";
import { readJsonBody } from "./json_body.ts";
import { estimatePromptTokens } from "./prompt_estimate.ts";

function estimate(json: string): number {
  const body = readJsonBody(new TextEncoder().encode(json));
  if (body.kind === "invalid") throw new Error(body.detail);
  return estimatePromptTokens(body);
}

Deno.test("estimatePromptTokens() counts text by its length", () => {
  equal(estimate("{}"), 1);
  equal(estimate(`{"a":"${"x".repeat(392)}"}`), 100);
  equal(estimate('{"a":";;;base64"}'), 5);
  ok(estimate(`{"a":"${"字".repeat(400)}"}`) >= 300);
});

Deno.test("estimatePromptTokens() counts an attachment as one lump, however long it is", () => {
  const image = `"data:image/png;base64,${"A".repeat(2_000_000)}"`;
  const one = estimate(`{"a":[${image}]}`);
  ok(one >= 1_000 && one < 1_100, `${one}`);
  const two = estimate(`{"a":[${image},${image},"${"x".repeat(400)}"]}`);
  ok(two >= 2_100 && two < 2_200, `${two}`);
  ok(estimate('{"a":"data:;base64,AAAA"}') >= 1_000);
});
