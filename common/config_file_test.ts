import { deepEqual, equal, match, rejects } from "node:assert/strict";
import { z } from "zod";
import { formatComplaints, loadConfig, parseConfig } from "./config_file.ts";

const schema = z.strictObject({
  listen: z.strictObject({ port: z.number().int() }).default({ port: 1 }),
  models: z.array(z.strictObject({ name: z.string(), tp: z.number().default(1) })).default([]),
});

Deno.test("parseConfig() fills defaults for an empty file", () => {
  deepEqual(parseConfig(schema, "", "x.yaml"), {
    kind: "ok",
    value: { listen: { port: 1 }, models: [] },
  });
});

Deno.test("parseConfig() names file, line, column and path of every complaint at once", () => {
  const text = "listen:\n  port: many\nmodels:\n  - name: a\n    tpp: 4\n  - tp: 2\n";
  const parsed = parseConfig(schema, text, "x.yaml");
  equal(parsed.kind, "invalid");
  if (parsed.kind !== "invalid") return;
  deepEqual(formatComplaints(parsed.complaints).split("\n"), [
    "x.yaml:2:9: listen.port: expected number, received string",
    "x.yaml:5:5: models[0].tpp: unknown key",
    "x.yaml:6:5: models[1].name: expected string, received undefined",
  ]);
});

Deno.test("parseConfig() places syntax errors and duplicate keys", () => {
  for (
    const [text, at] of [["a: [1,\n", /^x:2:1: /], [
      "listen: {port: 1}\nlisten: {port: 2}\n",
      /^x:2:1: /,
    ]] as const
  ) {
    const parsed = parseConfig(schema, text, "x");
    equal(parsed.kind, "invalid");
    if (parsed.kind === "invalid") match(formatComplaints(parsed.complaints), at);
  }
});

Deno.test("loadConfig() says which file cannot be read", async () => {
  await rejects(loadConfig(schema, "/nonexistent/x.yaml"), /Cannot read \/nonexistent\/x.yaml/);
});
