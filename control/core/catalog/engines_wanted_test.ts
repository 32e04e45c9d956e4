import { deepEqual, ok } from "node:assert/strict";
import { enginesSchema, TESTED_VERSIONS, wantedEngines } from "./engines_wanted.ts";

const LISTS = new URL("../../../tests/fixtures/engines/", import.meta.url);

Deno.test("an engine without versions is the one that this release was tested with", () => {
  const [engine] = wantedEngines(enginesSchema.parse([{ name: "vllm" }]));
  deepEqual([engine?.name, engine?.version], ["vllm", TESTED_VERSIONS.vllm]);
  const named = wantedEngines(
    enginesSchema.parse([{ name: "vllm", versions: ["0.28.1", "0.27.0"] }]),
  );
  deepEqual(named.map(({ version }) => version), ["0.28.1", "0.27.0"]);
});

Deno.test("what this release was tested with is what the adapters are held to", () => {
  const lists = [...Deno.readDirSync(LISTS)].map(({ name }) => name);
  for (const [engine, version] of Object.entries(TESTED_VERSIONS)) {
    ok(lists.includes(`${engine}-${version.replace(/^b/, "")}.txt`), `${engine} ${version}`);
  }
});
