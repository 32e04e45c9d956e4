import { equal } from "node:assert/strict";
import { liveThrough } from "../../control/core/testing/outcome.ts";
import { runMany } from "./runs.ts";

/** Time for random runs in the normal test, in ms; `deno task simulate` takes as long as it needs. */
const BUDGET_MS = 20_000;
/** Fewer than that, and the test has shown nothing. */
const RUNS_MIN = 10;

Deno.test("control survives random faults in random clusters, and ends with what is wanted", () => {
  const outcome = runMany({ firstSeed: 1, runs: 1_000, nodesMax: 60, budgetMs: BUDGET_MS });
  const why = outcome.kind === "well"
    ? ""
    : outcome.violations.map(({ invariant, detail }) => `\n${invariant}: ${detail}`).join("") +
      `\nto see it again: deno task simulate --runs 1 --seed ${outcome.seed} --nodes 60 --trace`;
  equal(why, "");
  equal(outcome.runs >= RUNS_MIN, true, `${outcome.runs} runs in ${BUDGET_MS} ms`);
});

Deno.test("a simulation with the same seed is the same run", () => {
  const [once, again] = [liveThrough(11, 20), liveThrough(11, 20)];
  equal(once.trace.length > 50, true, `${once.trace.length} lines`);
  equal(once.trace.join("\n"), again.trace.join("\n"));
});
