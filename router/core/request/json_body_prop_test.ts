import assert from "node:assert/strict";
import fc from "fast-check";
import { scanObject } from "../json/json_scan.ts";
import { readJsonBody } from "./json_body.ts";

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

/** Names of which some are the same one in another spelling. */
const names = fc.constantFrom('"a"', '"\\u0061"', '"b"', '"é"', '"\\u00e9"', '"__proto__"', '":"');
const { value } = fc.letrec<{ value: string; object: string; array: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom("1", '"a:b"', "null", '"\\\\\\""', "[]", "{}"),
    tie("object"),
    tie("array"),
  ),
  object: fc.array(fc.tuple(names, tie("value")), { maxLength: 4 })
    .map((members) => `{${members.map(([name, json]) => `${name}: ${json}`).join(" ,")}}`),
  array: fc.array(tie("value"), { maxLength: 4 }).map((items) => `[${items.join(",")}]`),
}));

Deno.test("property: readJsonBody() refuses a member that stands twice, wherever it does", () => {
  fc.assert(
    fc.property(value, (json) => {
      const bytes = encode(`{"messages":${json}}`);
      const strict = scanObject(bytes);
      const read = readJsonBody(bytes);
      if (strict.kind === "invalid") assert.deepEqual(read, strict);
      else assert.deepEqual(read.kind === "body" && read.object, strict);
    }),
    { numRuns: 2_000 },
  );
});

Deno.test("readJsonBody() says where a member stands twice", () => {
  const read = readJsonBody(
    encode('{"model":"m","tools":[{},{"function":{"name":"f","strict":true,"name":"g"}}]}'),
  );
  assert.equal(
    read.kind === "invalid" && read.detail,
    'The member "name" of tools[1].function appears twice, at byte 63',
  );
});
