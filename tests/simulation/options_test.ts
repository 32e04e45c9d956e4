import { deepEqual, throws } from "node:assert/strict";
import { parseOptions } from "./options.ts";

Deno.test("parseOptions() has defaults, and reads every option", () => {
  deepEqual(parseOptions([]), { seed: 1, nodes: 200, trace: false, help: false });
  deepEqual(
    parseOptions(["--runs", "3", "--seed", "9", "--nodes", "8", "--trace", "--mutate", "all"]),
    { runs: 3, seed: 9, nodes: 8, trace: true, mutate: "all", help: false },
  );
});

Deno.test("parseOptions() refuses what is no number, and options that it does not know", () => {
  throws(() => parseOptions(["--runs", "many"]), /--runs many: want a whole number/);
  throws(() => parseOptions(["--seed", "0"]), /--seed 0/);
  throws(() => parseOptions(["--loops", "3"]), TypeError);
});
