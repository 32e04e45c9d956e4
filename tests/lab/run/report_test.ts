import { deepEqual, equal, match, ok } from "node:assert/strict";
import { countJunit } from "../../../tools/junit_count.ts";
import { countSteps, formatJunit, formatTable } from "./report.ts";
import type { ScenarioResult } from "./result.ts";

const GOOD: ScenarioResult = {
  name: "nodes",
  ms: 5_300,
  steps: [{ name: "two nodes boot", ms: 700 }, { name: "SSH gets in", ms: 500 }],
};
const BAD: ScenarioResult = {
  name: "upgrade",
  ms: 61_000,
  steps: [{ name: "a <step> & more", ms: 1, failure: 'AssertionError: "a" < "b"\n\x1b[31mat x' }],
  failure: "the same",
};
/** It was killed before it could tell of a step. */
const KILLED: ScenarioResult = { name: "loss", ms: 9, steps: [], failure: "not over within 9 s" };
/** Its steps went well, and then something outside of them did not. */
const AFTER: ScenarioResult = { ...GOOD, failure: "Error: outside" };

Deno.test("countSteps() counts every step, and what failed outside of one", () => {
  deepEqual(countSteps([GOOD]), { passed: 2, failed: 0 });
  deepEqual(countSteps([GOOD, BAD, KILLED]), { passed: 2, failed: 2 });
  deepEqual(countSteps([AFTER]), { passed: 2, failed: 1 });
});

Deno.test("formatJunit() is read by whoever counts the other tests", () => {
  const xml = formatJunit([GOOD, BAD, KILLED, AFTER]);
  deepEqual(countJunit(xml), { passed: 4, failed: 3, skipped: 0 });
  match(xml, /name="a &lt;step&gt; &amp; more" classname="lab.upgrade"/);
  ok(!xml.includes("\x1b"), "no control character");
});

Deno.test("formatTable() has a line for each scenario and step", () => {
  equal(
    formatTable([GOOD, KILLED]),
    [
      "nodes                5.3 s  ok",
      "  two nodes boot     0.7 s  ok",
      "  SSH gets in        0.5 s  ok",
      "loss                 0.0 s  FAILED",
    ].join("\n"),
  );
});
