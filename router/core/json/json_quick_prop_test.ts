import assert from "node:assert/strict";
import fc from "fast-check";
import { quickObject } from "./json_quick.ts";
import { jsonText } from "./json_text.ts";
import { scanObject } from "./json_scan.ts";

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

const spaces = fc.constantFrom("", " ", "\n", "\t\r ");
const strings = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 12 }),
  fc.array(fc.constantFrom('"', "\\", "{", "}", "[", "]", ",", ":", "é", "\n"), { maxLength: 8 })
    .map((pieces) => pieces.join("")),
);
const values = fc.oneof(
  fc.jsonValue({ maxDepth: 4 }).map((value) => JSON.stringify(value)),
  strings.map((text) => JSON.stringify(text)),
  fc.constantFrom("1", "-0.5e+10", "true", "null", "[]", "{}", '[{"a":"]"}]', '{"a":"\\\\"}'),
);
const objects = fc.array(fc.tuple(strings, values, spaces, spaces), { maxLength: 6 })
  .map((members) =>
    `{${
      members.map(([key, value, before, after]) =>
        `${before}${JSON.stringify(key)}${after}:${before}${value}${after}`
      ).join(",")
    }}`
  );

Deno.test("property: quickObject() finds what the strict scanner finds", () => {
  fc.assert(
    fc.property(objects, spaces, (text, space) => {
      const bytes = encode(space + text + space);
      const strict = scanObject(bytes);
      const quick = quickObject(jsonText(bytes, space + text + space));
      if (strict.kind === "object") assert.deepEqual(quick?.object, strict);
    }),
    { numRuns: 1_000 },
  );
});

Deno.test("quickObject() counts what is written, at any depth and not in strings", () => {
  const text = '{"a":{"b":[{"c":1},{"c:":": \\": :","c":2}]},"a":3,"é":[]}';
  assert.equal(quickObject(jsonText(encode(text), text))?.memberCount, 7);
});

Deno.test("quickObject() leaves to the strict scanner what it would refuse", () => {
  const nested = (depth: number) => `{"a":${"[".repeat(depth)}${"]".repeat(depth)}}`;
  for (const text of [nested(300), "[1]", "1"]) {
    assert.equal(quickObject(jsonText(encode(text), text)), undefined, text.slice(0, 40));
  }
  for (const depth of [250, 254, 255, 256]) {
    const bytes = encode(nested(depth));
    const strict = scanObject(bytes);
    assert.equal(
      quickObject(jsonText(bytes, nested(depth)))?.object.kind,
      strict.kind === "object" ? "object" : undefined,
      `${depth}`,
    );
  }
});
