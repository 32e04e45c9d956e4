/** Inside a copy with a mistake in it: mutant.ts INVARIANT RUNS NODES. Exits 0 when it was noticed. */
import { liveThrough } from "../../control/core/testing/life/outcome.ts";
import { say } from "../../tools/say.ts";

const [invariant = "", runs = "", nodes = ""] = Deno.args;
const others = new Map<string, number>();
let caught = false;
for (let seed = 1; seed <= Number(runs) && !caught; seed++) {
  const { violations } = liveThrough(seed, Number(nodes));
  const found = violations.find((each) => each.invariant === invariant);
  if (found === undefined) {
    for (const each of violations) others.set(each.invariant, seed);
    continue;
  }
  caught = true;
  say(`caught by ${invariant} at seed ${seed}: ${found.detail}`);
}
if (!caught) {
  const seen = [...others].map(([name, seed]) => `${name} (seed ${seed})`).join(", ") || "nothing";
  say(`${invariant} did not notice in ${runs} runs; what did: ${seen}`);
  Deno.exitCode = 1;
}
