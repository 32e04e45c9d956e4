/** `deno task simulate`: the real core with simulated fleets, or with a mistake put into it. */
import { say } from "../../tools/say.ts";
import { MUTATIONS } from "./mutations.ts";
import { tryMutation } from "./mutate.ts";
import { HELP, type Options, parseOptions } from "./options.ts";
import { runMany } from "./runs.ts";

const RUNS = 1_000;
const MUTANT_RUNS = 400;

if (import.meta.main) Deno.exitCode = await main(Deno.args);

async function main(args: readonly string[]): Promise<number> {
  let options: Options;
  try {
    options = parseOptions(args);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    say(`${error.message}\n\n${HELP}`);
    return 2;
  }
  if (options.help) {
    say(HELP);
    return 0;
  }
  return options.mutate === undefined ? simulate(options) : await mutate(options.mutate, options);
}

function simulate({ runs = RUNS, seed, nodes, trace }: Options): number {
  const began = performance.now();
  const outcome = runMany({
    firstSeed: seed,
    runs,
    nodesMax: nodes,
    progress: (done) => {
      if (done % 100 === 0) say(`${done}/${runs} runs are well`);
    },
  });
  const took = `${((performance.now() - began) / 1_000).toFixed(1)} s`;
  if (outcome.kind === "well") {
    if (trace) say(outcome.trace.join("\n"));
    say(`${outcome.runs} runs, seeds ${seed} to ${seed + runs - 1}, all well, in ${took}`);
    return 0;
  }
  if (trace) say(outcome.trace.join("\n"));
  for (const { invariant, detail } of outcome.violations) say(`${invariant}: ${detail}`);
  const again = `deno task simulate --runs 1 --seed ${outcome.seed} --nodes ${nodes} --trace`;
  say(`seed ${outcome.seed} failed after ${outcome.runs} good runs; to see it again: ${again}`);
  return 1;
}

async function mutate(name: string, { runs = MUTANT_RUNS, nodes }: Options): Promise<number> {
  const chosen = MUTATIONS.filter((each) => name === "all" || each.name === name);
  if (chosen.length === 0) {
    say(`There is no mutation "${name}". There are: ${MUTATIONS.map((e) => e.name).join(", ")}`);
    return 2;
  }
  let escaped = 0;
  for (const mutation of chosen) {
    const verdict = await tryMutation(mutation, { runs, nodesMax: nodes });
    say(`${mutation.name}: ${verdict.detail}`);
    if (!verdict.caught) escaped++;
  }
  return escaped === 0 ? 0 : 1;
}
