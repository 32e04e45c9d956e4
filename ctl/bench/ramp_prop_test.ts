import { equal, ok } from "node:assert/strict";
import fc from "fast-check";
import { type Level, levelOf } from "./measured.ts";
import { nextStep, type RampResult } from "./ramp.ts";

const SLO = { ttftMs: 1_000, tpotMs: 50 };

function level(concurrency: number, goodput: number, within = 1): Level {
  return { ...levelOf([], { concurrency, seconds: 10 }, SLO), goodput, within };
}

/** Runs the search on a server whose goodput is a function of the load. */
function searched(
  serve: (concurrency: number, repeat: number) => Level,
  concurrencyMax = 512,
): { result: RampResult; levels: readonly Level[] } {
  const levels: Level[] = [];
  for (let repeat = 0; repeat < 100; repeat++) {
    const step = nextStep(levels, { concurrencyMax });
    if (step.kind === "done") return { result: step.result, levels };
    ok(step.concurrency >= 1 && step.concurrency <= concurrencyMax);
    levels.push(serve(step.concurrency, repeat));
  }
  throw new Error("the search does not end");
}

Deno.test("property: the search finds the knee of a server that saturates and then breaks its promise", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 2, max: 300 }),
      fc.double({ min: 0.1, max: 50, noNaN: true }),
      (knee, rate) => {
        // Rises in proportion, then the promise breaks for more and more of all requests.
        const goodput = (load: number) =>
          load <= knee ? load * rate : Math.max(0, knee * rate * (1 - 2 * (load - knee) / knee));
        const { result, levels } = searched((load) =>
          level(load, goodput(load), load <= knee ? 1 : Math.max(0, 1 - (load - knee) / knee))
        );
        ok(result.stable);
        equal(result.open, false);
        const best = result.best?.goodput ?? 0;
        ok(best >= 0.85 * knee * rate, `${best} of ${knee * rate}`);
        ok(levels.length <= 30, `${levels.length} levels`);
      },
    ),
    { numRuns: 1_000 },
  );
});

Deno.test("a server that is still rising at the largest load is said to be", () => {
  const { result } = searched((load) => level(load, load), 48);
  equal(result.best?.concurrency, 48);
  equal(result.open, true);
});

Deno.test("a server that keeps no promise ends the search at once", () => {
  const { result, levels } = searched((load) => level(load, 0, 0));
  equal(result.best, undefined);
  equal(levels.length, 1);
});

Deno.test("measurements that do not repeat are said to differ, after a bounded number", () => {
  const seen = new Map<number, number>();
  const { result, levels } = searched((load) => {
    const times = (seen.get(load) ?? 0) + 1;
    seen.set(load, times);
    return level(load, load <= 8 ? load * (times % 2 === 0 ? 1.2 : 1) : 1);
  });
  equal(result.stable, false);
  ok(result.spread > 0.05);
  ok(levels.length <= 41);
});
