import assert from "node:assert/strict";
import { randomFrom } from "./random.ts";
import { SchemaFill } from "./schema_fill.ts";

function fill(schema: unknown): unknown {
  return new SchemaFill(schema, randomFrom(1)).value();
}

const CASES: readonly (readonly [schema: unknown, fits: (value: unknown) => boolean])[] = [
  [{ type: "string" }, (value) => typeof value === "string"],
  [{ type: "string", minLength: 30 }, (value) => String(value).length >= 30],
  [{ type: "string", maxLength: 1 }, (value) => String(value).length <= 1],
  [{ type: "integer", minimum: 5, maximum: 6 }, (value) => value === 5 || value === 6],
  [{ type: "number" }, (value) => typeof value === "number"],
  [{ type: "boolean" }, (value) => typeof value === "boolean"],
  [{ type: ["null", "integer"] }, Number.isInteger],
  [{ type: "null" }, (value) => value === null],
  [{ enum: ["c", "f"] }, (value) => value === "c" || value === "f"],
  [{ const: 3 }, (value) => value === 3],
  [{ anyOf: [{ type: "boolean" }] }, (value) => typeof value === "boolean"],
  [
    { type: "array", items: { type: "boolean" }, minItems: 2 },
    (value) => Array.isArray(value) && value.length >= 2,
  ],
  [{ type: "array", maxItems: 0 }, (value) => Array.isArray(value) && value.length === 0],
  [{}, (value) => typeof value === "string"],
  [null, (value) => typeof value === "string"],
  [{ type: "nonsense" }, (value) => typeof value === "string"],
];

for (const [schema, fits] of CASES) {
  Deno.test(`SchemaFill obeys ${JSON.stringify(schema)}`, () => {
    const value = fill(schema);
    assert.ok(fits(value), JSON.stringify(value));
  });
}

Deno.test("SchemaFill fills nested objects and references", () => {
  const value = fill({
    type: "object",
    properties: { at: { $ref: "#/$defs/place" }, when: { type: "string", format: "date" } },
    $defs: { place: { type: "object", properties: { city: { type: "string" } } } },
  });
  assert.deepEqual(Object.keys(Object(value)), ["at", "when"]);
  assert.match(JSON.stringify(value), /^{"at":{"city":"\w+"},"when":"\d{4}-\d\d-\d\d"}$/);
});

Deno.test("SchemaFill ends on a schema that refers to itself", () => {
  const tree = { type: "object", properties: { left: { $ref: "#" }, right: { $ref: "#" } } };
  assert.ok(JSON.stringify(fill(tree)).length < 100_000);
});
