import assert from "node:assert/strict";
import { readJsonBody } from "./json_body.ts";
import { jsonText } from "../json/json_text.ts";
import { beyondBounds } from "./json_bounds.ts";

const encode = (text: string) => new TextEncoder().encode(text);
const textOf = (text: string) => jsonText(encode(text), text);
const nested = (levels: number) => encode(`{"a":${"[".repeat(levels)}${"]".repeat(levels)}}`);

Deno.test("readJsonBody() takes 256 levels, and refuses more before it parses anything", () => {
  assert.equal(readJsonBody(nested(255)).kind, "body");
  for (const levels of [256, 10_000, 5_000_000]) {
    const read = readJsonBody(nested(levels));
    assert.ok(read.kind === "invalid");
    assert.deepEqual([read.reason, read.offset], ["too_deep", 260]);
  }
});

Deno.test("readJsonBody() refuses bodies that would take many times their size", () => {
  const bodies = {
    objects: `{"a":[${"{},".repeat(2 ** 20)}{}]}`,
    arrays: `{"a":[${"[],".repeat(2 ** 20)}[]]}`,
    members: `{${'"a":0,'.repeat(2 ** 20)}"b":1}`,
  };
  for (const [what, body] of Object.entries(bodies)) {
    const read = readJsonBody(encode(body));
    assert.ok(read.kind === "invalid", what);
    assert.equal(read.reason, "too_many", what);
    assert.match(read.detail, /^More than 1048576 arrays, objects and members at byte \d+$/);
  }
});

Deno.test("readJsonBody() takes millions of numbers, as embeddings send them", () => {
  assert.equal(readJsonBody(encode(`{"input":[${"1,".repeat(3_000_000)}1]}`)).kind, "body");
});

Deno.test("beyondBounds() counts nothing inside of strings, however they are escaped", () => {
  const brackets = "[".repeat(20_000);
  for (
    const text of [brackets, `\\"${brackets}`, `\\\\\\"${brackets}`, `é${" ".repeat(20_000)}\\\\`]
  ) {
    assert.equal(beyondBounds(textOf(`{"a":"${text}","b":1}`)), undefined, text.slice(0, 9));
  }
  assert.equal(beyondBounds(textOf(`{"a":"\\\\",${brackets}`))?.reason, "too_deep");
});

Deno.test("beyondBounds() leaves what is not JSON to those who can tell", () => {
  for (const text of ["", '"', '{"a', "}".repeat(20_000), "\\".repeat(20_000)]) {
    assert.equal(beyondBounds(textOf(text)), undefined);
  }
});
