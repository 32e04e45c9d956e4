/** The results of a run as a table for people and as JUnit for machines. */
import type { ScenarioResult, StepResult } from "./result.ts";

/** A line for each scenario and step, with how long it took. */
export function formatTable(results: readonly ScenarioResult[]): string {
  const rows = results.flatMap((result) => [
    [result.name, seconds(result.ms), wordOf(result)],
    ...result.steps.map((step) => [
      `  ${step.name}`,
      seconds(step.ms),
      step.failure === undefined ? "ok" : "FAILED",
    ]),
  ]);
  const width = Math.max(...rows.map(([name = ""]) => name.length));
  return rows.map(([name = "", time = "", word = ""]) =>
    `${name.padEnd(width)}  ${time.padStart(8)}  ${word}`
  ).join("\n");
}

function wordOf({ failure, skipped }: ScenarioResult): string {
  if (skipped !== undefined) return `skipped: ${skipped}`;
  return failure === undefined ? "ok" : "FAILED";
}

/** How many steps passed and failed. A scenario that failed outside of its steps is one more. */
export function countSteps(results: readonly ScenarioResult[]): { passed: number; failed: number } {
  const cases = results.flatMap(casesOf);
  const failed = cases.filter(({ failure }) => failure !== undefined).length;
  return { passed: cases.length - failed, failed };
}

/** One suite for each scenario, one case for each step. */
export function formatJunit(results: readonly ScenarioResult[]): string {
  const suites = results.map((result) => {
    if (result.skipped !== undefined) return skippedSuite(result.name, result.skipped);
    const cases = casesOf(result);
    const failures = cases.filter(({ failure }) => failure !== undefined).length;
    const inside = cases.map((step) => {
      const head = `    <testcase name="${escape(step.name)}" classname="lab.${
        escape(result.name)
      }" time="${(step.ms / 1_000).toFixed(3)}"`;
      if (step.failure === undefined) return `${head}/>`;
      const first = step.failure.split("\n")[0] ?? "";
      return `${head}>\n      <failure message="${escape(first)}">${
        escape(step.failure)
      }</failure>\n    </testcase>`;
    });
    return `  <testsuite name="lab.${
      escape(result.name)
    }" tests="${cases.length}" failures="${failures}" time="${(result.ms / 1_000).toFixed(3)}">\n${
      inside.join("\n")
    }\n  </testsuite>`;
  });
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="lab">\n${
    suites.join("\n")
  }\n</testsuites>\n`;
}

function skippedSuite(name: string, why: string): string {
  const suite = `lab.${escape(name)}`;
  return `  <testsuite name="${suite}" tests="1" failures="0" skipped="1">\n` +
    `    <testcase name="${suite} as a whole" classname="${suite}">\n` +
    `      <skipped message="${escape(why)}"/>\n    </testcase>\n  </testsuite>`;
}

function casesOf({ name, ms, steps, failure, skipped }: ScenarioResult): readonly StepResult[] {
  if (skipped !== undefined) return [];
  const told = steps.some((step) => step.failure !== undefined);
  if (steps.length > 0 && (failure === undefined || told)) return steps;
  return [...steps, { name: `${name} as a whole`, ms, failure }];
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

// Control characters have no place in XML, however they are written.
function escape(text: string): string {
  return text.replaceAll(/[^\t\n\r -\u{10FFFF}]/gu, "?")
    .replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
