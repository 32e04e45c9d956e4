import { equal, ok } from "node:assert/strict";
import fc from "fast-check";
import { observe } from "../observing/observe.ts";
import { applyStep, draftOf } from "../deciding/draft.ts";
import { modelOf, T0, world } from "../testing/builders.ts";
import { casesOf } from "../testing/random.ts";
import type { World } from "../world.ts";
import { scaleStep } from "./scaling.ts";

const MODEL = modelOf({ name: "m", scaling: { min: 1, max: 20, target: 10 } });

/** Demand of some length, or silence. */
const phase = fc.record({
  requests: fc.option(fc.nat(250), { freq: 5, nil: undefined }),
  reports: fc.integer({ min: 1, max: 60 }),
});

interface Look {
  readonly at: number;
  readonly count: number;
  readonly before: number;
  readonly requests: number | undefined;
}

/** Lives through the phases with a report every 2 s, taking every step at once. */
function live(phases: readonly { requests: number | undefined; reports: number }[]): Look[] {
  let so: World = world([MODEL]);
  const looks: Look[] = [];
  let at = T0;
  let count = 1;
  for (const { requests, reports } of phases) {
    for (let report = 0; report < reports; report++, at += 2_000) {
      if (requests !== undefined) so = heard(so, requests, at);
      const step = scaleStep(so, MODEL, { live: count, ready: count, found: 0 }, at);
      const before = count;
      if (step !== undefined) {
        const draft = draftOf(so);
        applyStep(draft, step, at);
        so = { ...so, models: draft.models };
        count = step.count;
      }
      looks.push({ at, count, before, requests });
    }
  }
  return looks;
}

function heard(so: World, waiting: number, at: number): World {
  return observe(so, {
    kind: "router_report",
    router: "r/1",
    version: "",
    instance: "1",
    applied: { term: 1, sequence: 0 },
    replicas: new Map(),
    models: new Map([["m", { waiting, requests: 0, failures: 0 }]]),
  }, at);
}

const RUNS = casesOf(1_000);

Deno.test("scaleStep() stays within bounds, and takes nothing away in silence", () => {
  fc.assert(
    fc.property(fc.array(phase, { minLength: 1, maxLength: 8 }), (phases) => {
      const looks = live(phases);
      looks.forEach(({ count, before }, index) => {
        ok(count >= 1 && count <= 20, `${count}`);
        // What was heard within 15 s still counts.
        const silent = looks.slice(Math.max(0, index - 7), index + 1)
          .every((each) => each.requests === undefined);
        if (silent) ok(count >= before, `${before} to ${count} in silence`);
      });
    }),
    RUNS,
  );
});

Deno.test("scaleStep() never goes below what was needed within the window, nor above the least", () => {
  fc.assert(
    fc.property(fc.array(phase, { minLength: 1, maxLength: 8 }), (phases) => {
      const looks = live(phases);
      looks.forEach(({ at, count, before }, index) => {
        const within = (ms: number) =>
          looks.slice(0, index + 1).filter((each) => each.at > at - ms)
            .flatMap(({ requests }) => requests ?? []);
        if (count < before) ok(count * 10 >= Math.max(...within(60_000)) || count === 20);
        if (count > before) ok((count - 1) * 10 < Math.min(...within(30_000)));
      });
    }),
    RUNS,
  );
});

Deno.test("scaleStep() comes to rest under a steady demand, with room for it", () => {
  fc.assert(
    fc.property(fc.nat(190), fc.array(phase, { maxLength: 4 }), (requests, phases) => {
      const looks = live([...phases, { requests, reports: 160 }]);
      const rest = looks.slice(-60).map((each) => each.count);
      equal(new Set(rest).size, 1);
      const [count = 0] = rest;
      ok(count * 10 >= requests, `${count} for ${requests}`);
      ok(count <= Math.max(1, Math.ceil(requests / 8)), `${count} for ${requests}`);
    }),
    RUNS,
  );
});
