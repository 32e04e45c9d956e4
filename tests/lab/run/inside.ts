/**
 * Runs one scenario. Started by main.ts as pid 1 of namespaces of its own: when it ends, however it
 * ends, the kernel ends every process, mount and network that it made.
 */
import { Lab } from "../lab.ts";
import { type ScenarioResult, writeResult } from "./result.ts";
import { SCENARIOS } from "../scenarios.ts";

const [name = "", base = "", cgroup = "", artefacts = "", resultFile = "", form] = Deno.args;

// main.ts holds the other end: when it is gone, nobody waits for this.
async function endWithStarter(): Promise<void> {
  for await (const _ of Deno.stdin.readable) {
    // It never says anything.
  }
  Deno.exit(1);
}

function say(line: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));
}

async function runScenario(): Promise<ScenarioResult> {
  const scenario = SCENARIOS[name];
  if (scenario === undefined) throw new Error(`There is no scenario "${name}"`);
  const startedAt = performance.now();
  let failure: string | undefined;
  await using lab = await Lab.open({ base, cgroup, artefacts, say, quick: form === "quick" });
  const late = Promise.withResolvers<never>();
  // Ended here and not from outside, so that its nodes' journals are saved.
  const timer = setTimeout(() => {
    const where = lab.currentStep === undefined ? "" : `, in step "${lab.currentStep}"`;
    late.reject(new Error(`Not over within ${scenario.limitMs / 1_000} s${where}`));
  }, scenario.limitMs);
  try {
    await Promise.race([scenario.run(lab), late.promise]);
  } catch (error) {
    failure = error instanceof Error ? error.stack ?? error.message : String(error);
  } finally {
    clearTimeout(timer);
  }
  return { name, ms: performance.now() - startedAt, steps: lab.steps, failure };
}

if (import.meta.main) {
  void endWithStarter();
  // A pid 1 gets no signal that it does not listen for.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    Deno.addSignalListener(signal, () => Deno.exit(130));
  }
  const result = await runScenario();
  await writeResult(resultFile, result);
  Deno.exit(result.failure === undefined ? 0 : 1);
}
