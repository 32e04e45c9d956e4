/**
 * `deno task ok`: the gate. The same command before a commit and in CI, cheapest step first; it
 * stops at the first that fails, shows what that step said, and what to do about it.
 *
 * `--without-tests` leaves the unit tests out, for a caller that runs the whole suite anyway.
 */
import { ROOT } from "./repository.ts";
import { run } from "./run.ts";
import { runTool, say } from "./say.ts";

interface Step {
  readonly name: string;
  /** Arguments of this very Deno. */
  readonly args: readonly string[];
  readonly instead: string;
}

/** Folders with unit tests. tests/ is not among them: `deno task test` runs that too. */
const UNIT_TESTS = ["proto", "common", "sim", "agent", "router", "control", "ctl", "tools"];

const CHECKS: readonly Step[] = [
  {
    name: "format",
    args: ["fmt", "--check"],
    instead: "Run: deno fmt",
  },
  {
    name: "lock file",
    args: ["install", "--quiet", "--frozen"],
    instead: "deno.json asks for what deno.lock does not have. Run: deno install",
  },
  {
    name: "lint",
    args: ["lint"],
    instead: "Each finding says what to write instead",
  },
  {
    name: "types",
    args: ["check"],
    instead: "The code does not compile: see above",
  },
  {
    name: "wire definitions",
    args: ["run", "-P=tools", "tools/proto/generate.ts", "--check"],
    instead: "See above; proto/gen is written by: deno task proto",
  },
  {
    name: "JSON Schemas",
    args: ["run", "-P=tools", "tools/schema/generate.ts", "--check"],
    instead: "See above; schema/ is written by: deno task schema",
  },
  {
    name: "dashboards",
    args: ["run", "-P=tools", "tools/dashboards/generate.ts", "--check"],
    instead: "See above; the dashboards are written by: deno task dashboards",
  },
  {
    name: "console page",
    args: ["run", "-P=tools", "tools/console/generate.ts", "--check"],
    instead: "See above; the page is written by: deno task console",
  },
];

const TESTS: Step = {
  name: "unit tests",
  args: ["test", "-P=test", "--quiet", "--no-check", ...UNIT_TESTS],
  instead: "Run the failing file alone: deno test -P=test FILE",
};

if (import.meta.main) {
  await runTool(async () => {
    const steps = Deno.args.includes("--without-tests") ? CHECKS : [...CHECKS, TESTS];
    for (const step of steps) {
      const start = performance.now();
      const { ok, output } = await run(Deno.execPath(), { args: step.args, cwd: ROOT });
      const seconds = `${((performance.now() - start) / 1000).toFixed(1)} s`;
      say(`${ok ? "ok    " : "FAILED"}  ${step.name.padEnd(18)} ${seconds.padStart(7)}`);
      if (!ok) throw new Error(`\n${output.trimEnd()}\n\n${step.name}: ${step.instead}`);
    }
  });
}
