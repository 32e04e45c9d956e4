import { deepEqual, equal, match, ok } from "node:assert/strict";
import { plot } from "./plot.ts";
import { ReplicaLoad } from "./replica.ts";
import { replay } from "./replay.ts";
import { DAY_S, traceOf } from "./trace.ts";

Deno.test("a trace is the same for a seed, another for another, and has the shape of a day", () => {
  const [one, same, other] = [traceOf(1, 80), traceOf(1, 80), traceOf(2, 80)];
  const some = (trace: ReturnType<typeof traceOf>) =>
    Array.from({ length: 50 }, (_, second) => trace.arrivals(second, 1));
  deepEqual(some(one), some(same));
  ok(JSON.stringify(some(traceOf(1, 80))) !== JSON.stringify(some(other)));
  equal(one.rate(-60), one.rate(DAY_S - 60));
  const mean = (from: number) =>
    Array.from({ length: 60 }, (_, minute) => one.rate((from * 60 + minute) * 60))
      .reduce((sum, each) => sum + each, 0) / 60;
  ok(mean(14) > 5 * mean(3), `${mean(14)} at two o'clock, ${mean(3)} in the night`);
});

Deno.test("a replica alone with a request gives tokens at its own speed, and shares it with more", () => {
  const tpot = (count: number) => {
    const load = new ReplicaLoad();
    for (let index = 0; index < count; index++) {
      load.take({ promptTokens: 20, outputTokens: 81, arrivedAt: 0 });
    }
    for (let now = 10;; now += 10) {
      const [done] = load.advance(10, now);
      if (done !== undefined) return done.tpotMs;
    }
  };
  ok(Math.abs(tpot(1) - 12.5) < 0.5, `${tpot(1)} ms`);
  ok(tpot(64) > 1.5 * tpot(1) && tpot(64) < 2.5 * tpot(1), `${tpot(64)} ms`);
});

Deno.test("control scales a fleet with the day: fewer misses than the least, fewer GPUs than the most", () => {
  const run = (min: number, max: number) =>
    replay({ trace: traceOf(1, 240), hours: 1, scaling: { min, max, target: 32 } });
  const [scaled, least, most] = [run(2, 8), run(2, 2), run(8, 8)];
  ok(scaled.late + scaled.refused < (least.late + least.refused) / 2);
  ok(least.gpuHours < scaled.gpuHours && scaled.gpuHours < most.gpuHours);
  equal(most.changes, 0);
  deepEqual(scaled, run(2, 8), "the same again");
});

Deno.test("plot() draws every line of every panel, inside of it", () => {
  const svg = plot([{
    title: "Replicas",
    top: 4,
    unit: String,
    lines: [
      { style: "scaled", label: "a", points: [[0, 0], [DAY_S, 4]] },
      { style: "least", label: "b", points: [[0, 9]] },
    ],
  }]);
  match(svg, /^<svg xmlns=[^>]+>\n<style>/);
  match(svg, /class="line scaled" points="56\.0,164\.0 844\.0,34\.0"/);
  match(svg, /class="line least" points="56\.0,34\.0"/, "what is too high ends at the top");
});
