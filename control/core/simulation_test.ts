import { deepEqual, equal } from "node:assert/strict";
import { QUIET_MS, scenario, trouble, unsettledBusiness } from "./testing/scenario.ts";

/** Random runs in the normal test; HEDDLE_SIM_RUNS and HEDDLE_SIM_SEED ask for others. */
const RUNS = Number(Deno.env.get("HEDDLE_SIM_RUNS") ?? 200);
const FIRST_SEED = Number(Deno.env.get("HEDDLE_SIM_SEED") ?? 1);

Deno.test("control survives random faults, and ends with what the catalog wants", () => {
  for (let seed = FIRST_SEED; seed < FIRST_SEED + RUNS; seed++) {
    const sim = scenario(seed);
    sim.run(40_000);
    trouble(sim, 300_000);
    sim.run(QUIET_MS);
    const wrong = [...sim.violations, ...unsettledBusiness(sim)];
    const trace = RUNS === 1 ? sim.trace.join("\n") : "";
    const again = `HEDDLE_SIM_RUNS=1 HEDDLE_SIM_SEED=${seed}`;
    deepEqual(wrong, [], `seed ${seed}; for its trace: ${again}\n${trace}\n${wrong.join("\n")}`);
  }
});

Deno.test("a simulation with the same seed is the same run", () => {
  const traces = [1, 2].map(() => {
    const sim = scenario(7);
    sim.run(20_000);
    trouble(sim, 60_000);
    return sim.trace.join("\n");
  });
  equal(traces[0], traces[1]);
});
