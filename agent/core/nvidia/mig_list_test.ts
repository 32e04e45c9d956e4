import { deepEqual } from "node:assert/strict";
import { parseMigList } from "./mig_list.ts";

Deno.test("parseMigList() finds the instances under their GPU", () => {
  const fixture = new URL(
    "../../../tests/fixtures/hardware/list/L-a100-mig.txt",
    import.meta.url,
  );
  deepEqual([...parseMigList(Deno.readTextFileSync(fixture))], [
    ["GPU-e0dab35e-30b8-fb22-a731-73baa12dab68", ["3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb"]],
    ["GPU-fe975310-9e12-d3b3-4ff5-aa0a2b49c8a9", []],
  ]);
});
