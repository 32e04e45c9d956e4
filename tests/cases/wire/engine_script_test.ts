import { Buffer } from "node:buffer";
import assert from "node:assert/strict";
import { gunzipSync } from "node:zlib";
import type { Upstream } from "../case_schema.ts";
import { defaultAnswer } from "./default_answer.ts";
import { placesOf, scriptOf } from "./engine_script.ts";

const PLACES: readonly [cuts: Upstream["cuts"], text: string, places: number[]][] = [
  ["none", "abc", []],
  ["every-byte", "abc", [1, 2]],
  ["per-event", "a\n\nb\r\n\r\n", [3, 8]],
  ["mid-codepoint", "aé🙂", [2, 4, 5, 6]],
  [[1, 2, "between-cr-and-lf"], "a\r\nb\r\n", [1, 2, 5]],
  [['inside "usage"'], 'x"usage"y"usage"', [5, 13]],
  [["between \\n and \\n"], "a\n\nb", [2]],
];

for (const [cuts, text, places] of PLACES) {
  Deno.test(`placesOf() finds ${JSON.stringify(cuts)}`, () => {
    assert.deepEqual(placesOf(cuts, Buffer.from(text)), places);
  });
}

Deno.test("placesOf() refuses a place that it does not know", () => {
  assert.throws(() => placesOf(["somewhere"], Buffer.from("a")), /no such place/);
});

const answer = (more: Partial<Upstream>) =>
  scriptOf({ ...defaultAnswer("/"), ...more }, () => Buffer.from("abcdef"));

Deno.test("scriptOf() cuts, shortens and compresses what an engine says", () => {
  const pieces = (more: Partial<Upstream>) =>
    answer({ file: "x", ...more }).pieces.map((piece) => Buffer.from(piece).toString());
  assert.deepEqual(pieces({ cuts: [2, 4] }), ["ab", "cd", "ef"]);
  assert.deepEqual(pieces({ bytes: 3 }), ["abc"]);
  assert.equal(answer({ bytes: 0 }).mute, true);
  const packed = answer({ file: "x", encode: "gzip" });
  assert.equal(packed.headers["content-encoding"], "gzip");
  assert.equal(gunzipSync(Buffer.concat(packed.pieces)).toString(), "abcdef");
});

Deno.test("scriptOf() makes one event of a given size", () => {
  const script = answer({ generate: { kind: "one-delta", content_bytes: 5_000 } });
  assert.match(Buffer.from(script.body).toString(), /"content":"x{5000}"/);
});
