/**
 * `deno task lab [SCENARIO…|all]`: a fleet of real systemd nodes on this machine. Each scenario runs
 * in namespaces of its own, with nothing but its own network, and leaves nothing behind.
 *
 * `--ci` runs those that every change has to pass, in a short form, where the machine can; elsewhere
 * it says why not, reports them as skipped, and exits with 0.
 */
import { join } from "node:path";
import { errorText } from "@heddle/proto/error";
import { ROOT } from "../../tools/repository.ts";
import { runTool, say } from "../../tools/say.ts";
import { prepareFleet } from "./fleet.ts";
import { openBase, removeOtherBases } from "./machine/base.ts";
import { prepareHost } from "./machine/host.ts";
import { countSteps, formatJunit, formatTable } from "./run/report.ts";
import { runsHere, separates } from "./machine/runs_here.ts";
import { readResult, type ScenarioResult } from "./run/result.ts";
import { beginRun, cleanUpAfterOthers, endRun, type RunRecord } from "./run/run_record.ts";
import { SCENARIOS } from "./scenarios.ts";

const ARTEFACTS = join(ROOT, ".heddle/lab");

/** A scenario that is over its time still saves what its nodes wrote down. */
const SAVE_MS_MAX = 60_000;

/** What `--ci` runs. */
const CI_SCENARIOS: readonly string[] = ["onboard", "preflight", "upgrade"];

/** With `--ci` none is begun later: all of them are to be over within ten minutes. */
const CI_BEGIN_MS_MAX = 360_000;

/** A machine that needs longer for one of them is too slow to judge by: it counts as skipped. */
const CI_SCENARIO_MS_MAX = 540_000;

interface Place {
  readonly base: string;
  readonly run: RunRecord;
  /** Scenarios leave out what costs time and is proved by others. */
  readonly quick: boolean;
}

async function main(args: readonly string[]): Promise<void> {
  if (args.length === 0) return say(usage());
  if (args.includes("--ci")) return await runCi();
  const names = args.includes("all") ? Object.keys(SCENARIOS) : args;
  for (const name of names) {
    if (SCENARIOS[name] === undefined) {
      throw new Error(`There is no scenario "${name}"\n\n${usage()}`);
    }
  }
  const place = await openPlace(false);
  const results: ScenarioResult[] = [];
  try {
    for (const name of names) results.push(await runScenario(name, place));
  } finally {
    await endRun(place.run);
  }
  await report(results);
}

async function openPlace(quick: boolean): Promise<Place> {
  await prepareHost(say);
  const cache = cacheFolder();
  const others = await cleanUpAfterOthers(cache);
  const base = await openBase(cache, say);
  if (others === 0) await removeOtherBases(cache, base);
  return { base, run: await beginRun(cache), quick };
}

async function runCi(): Promise<void> {
  const startedAt = performance.now();
  const none = (why: string) => report(CI_SCENARIOS.map((name) => skipped(name, why)));
  let place: Place;
  try {
    const why = await separates();
    if (why !== undefined) return await none(why);
    place = await openPlace(true);
  } catch (error) {
    return await none(errorText(error));
  }
  const results: ScenarioResult[] = [];
  try {
    const why = await runsHere(place.base) ?? await prepareFleet().then(() => undefined, errorText);
    for (const name of CI_SCENARIOS) {
      const ms = performance.now() - startedAt;
      if (why !== undefined) results.push(skipped(name, why));
      else if (ms > CI_BEGIN_MS_MAX) {
        const text = `this machine has taken ${Math.round(ms / 1_000)} s for those before it`;
        results.push(skipped(name, text));
      } else results.push(await runScenario(name, place));
    }
  } finally {
    await endRun(place.run);
  }
  await report(results);
}

function skipped(name: string, why: string): ScenarioResult {
  const reason = why.split("\n")[0] ?? why;
  say(`The lab's ${name} is skipped: ${reason}`);
  return { name, ms: 0, steps: [], skipped: reason };
}

async function report(results: readonly ScenarioResult[]): Promise<void> {
  await Deno.mkdir(ARTEFACTS, { recursive: true });
  await Deno.writeTextFile(join(ARTEFACTS, "junit.xml"), formatJunit(results));
  say(`\n${formatTable(results)}\n`);
  const { passed, failed } = countSteps(results);
  say(`${passed} passed, ${failed} failed`);
  if (failed > 0) Deno.exitCode = 1;
}

async function runScenario(name: string, { base, run, quick }: Place): Promise<ScenarioResult> {
  const scenario = SCENARIOS[name];
  if (scenario === undefined) throw new Error(`There is no scenario "${name}"`);
  say(`${name}: ${scenario.title}`);
  await scenario.prepare?.();
  const artefacts = join(ARTEFACTS, name);
  await Deno.remove(artefacts, { recursive: true }).catch(() => {});
  await Deno.mkdir(artefacts, { recursive: true });
  const resultFile = join(artefacts, "result.json");
  const startedAt = performance.now();
  const child = new Deno.Command("unshare", {
    args: [
      ...["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"],
      ...[Deno.execPath(), "run", "-P=lab", "--quiet", "--no-prompt"],
      join(ROOT, "tests/lab/run/inside.ts"),
      ...[name, base, run.cgroup, artefacts, resultFile, quick ? "quick" : "whole"],
    ],
    // Its end tells the scenario that this process is gone.
    stdin: "piped",
  }).spawn();
  const stop = endOnSignals(child);
  const limitMs = quick ? CI_SCENARIO_MS_MAX : scenario.limitMs + SAVE_MS_MAX;
  const timer = setTimeout(() => child.kill("SIGKILL"), limitMs);
  await child.status;
  clearTimeout(timer);
  stop.remove();
  const ms = performance.now() - startedAt;
  const read = await readResult(resultFile);
  if (read === undefined && quick && ms >= limitMs && !stop.stopped()) {
    return skipped(name, `it was not over within ${limitMs / 1_000} s on this machine`);
  }
  const result = read ?? {
    name,
    ms,
    steps: [],
    failure: ms >= limitMs
      ? `not over within ${limitMs / 1_000} s`
      : "it was ended, or could not begin",
  };
  if (result.failure !== undefined) say(`${result.failure}\nMore in ${artefacts}`);
  if (stop.stopped()) throw new Error("Stopped; everything that ran is gone");
  return result;
}

// SIGKILL to `unshare` is the end of all that runs in its namespaces.
function endOnSignals(child: Deno.ChildProcess) {
  let stopped = false;
  const listener = () => {
    stopped = true;
    child.kill("SIGKILL");
  };
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  for (const signal of signals) Deno.addSignalListener(signal, listener);
  return {
    stopped: () => stopped,
    remove: () => {
      for (const signal of signals) Deno.removeSignalListener(signal, listener);
    },
  };
}

function cacheFolder(): string {
  const cache = Deno.env.get("XDG_CACHE_HOME") ?? join(Deno.env.get("HOME") ?? "/root", ".cache");
  return join(cache, "heddle/lab");
}

function usage(): string {
  const rows = Object.entries(SCENARIOS).map(([name, { title }]) => `  ${name.padEnd(20)}${title}`);
  return `deno task lab SCENARIO… | all\n\n${rows.join("\n")}`;
}

if (import.meta.main) await runTool(() => main(Deno.args));
