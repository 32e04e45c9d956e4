import assert from "node:assert/strict";
import { z } from "zod";
import { DOCUMENTS, render } from "./generate.ts";

/** As much of a JSON Schema as these tests walk through. */
const schemaNode = z.looseObject({
  description: z.string().optional(),
  additionalProperties: z.unknown().optional(),
  properties: z.record(z.string(), z.unknown()).optional(),
});

/** Calls `visit` for the schema at `path` and all that it holds, with the name of each place. */
function walk(
  path: string,
  value: unknown,
  visit: (path: string, node: z.infer<typeof schemaNode>) => void,
): void {
  if (Array.isArray(value)) {
    for (const item of value) walk(path, item, visit);
    return;
  }
  const parsed = schemaNode.safeParse(value);
  if (!parsed.success) return;
  visit(path, parsed.data);
  for (const [key, inner] of Object.entries(parsed.data.properties ?? {})) {
    walk(`${path}.${key}`, inner, visit);
  }
  for (const key of ["items", "anyOf", "oneOf", "allOf", "additionalProperties", "$defs"]) {
    const inner = parsed.data[key];
    if (key === "$defs" && typeof inner === "object" && inner !== null) {
      for (const [name, def] of Object.entries(inner)) walk(`${path}#${name}`, def, visit);
    } else {
      walk(`${path}[]`, inner, visit);
    }
  }
}

for (const document of DOCUMENTS) {
  Deno.test(`the schema of ${document.name}.yaml describes every key and refuses others`, async () => {
    const schema: unknown = JSON.parse(await render(document));
    const missing: string[] = [];
    walk(document.name, schema, (path, node) => {
      for (const [key, inner] of Object.entries(node.properties ?? {})) {
        const described = schemaNode.safeParse(inner).data?.description;
        if (described === undefined) missing.push(`${path}.${key}: add .describe() with its unit`);
      }
      if (node.properties !== undefined && node.additionalProperties !== false) {
        missing.push(`${path}: takes keys that it does not know: use z.strictObject`);
      }
    });
    assert.equal(missing.length, 0, `\n${missing.join("\n")}\n`);
  });
}

Deno.test("render() keeps keys with a default optional, and says which module is wrong", async () => {
  const [control] = DOCUMENTS;
  assert.ok(control !== undefined);
  const text = await render(control);
  assert.match(text, /"default"/);
  assert.ok(text.endsWith("}\n"));
  await assert.rejects(
    render({ ...control, export: "settingsOf" }),
    /control\/config\.ts exports no/,
  );
});
