/** What several routers let through of one limit, from a cold start and under every load. */
import { ok } from "node:assert/strict";
import { type Load, SharedLimit } from "./shared_limit.ts";

const SECONDS = 180;

const LOADS: readonly (readonly [name: string, load: Load])[] = [
  ["even and far beyond the limit", () => 20],
  ["all at one router", (router) => router === 0 ? 40 : 0],
  ["skewed: nine tenths at one", (router) => router === 0 ? 36 : 2],
  [
    "at another router every seven seconds",
    (router, s) => Math.floor(s / 7) % 3 === router ? 40 : 0,
  ],
  ["bursts after pauses", (router, s) => s % 60 < 3 ? 100 * (router + 1) : 0],
  ["one early, the others later", (router, s) => s < 30 * (router + 1) ? 25 : 3],
];

for (const routers of [1, 2, 3]) {
  for (const limit of [10, 600]) {
    for (const [name, load] of LOADS) {
      Deno.test(`${routers} routers, ${limit} a minute, ${name}: at most 1.1 times the limit`, () => {
        const site = new SharedLimit(limit, routers);
        const run = site.run(SECONDS, load);
        const fullest = site.fullestMinute(run);
        ok(fullest <= 1.1 + 1e-9, `the fullest minute had ${fullest.toFixed(3)} times the limit`);
        const wanted = wantedOf(load, routers);
        const mean = run.admitted.length * 60 / SECONDS / limit;
        const share = Math.min(1, wanted * 60 / SECONDS / limit);
        ok(mean >= 0.7 * share, `only ${mean.toFixed(2)} times the limit on average`);
        ok(
          run.refusedWhileIdle <= 0.01 * run.refused + 2,
          `${run.refusedWhileIdle} of ${run.refused} refused while another router was idle`,
        );
      });
    }
  }
}

function wantedOf(load: Load, routers: number): number {
  let sum = 0;
  for (let second = 0; second < SECONDS; second++) {
    for (let router = 0; router < routers; router++) sum += load(router, second);
  }
  return sum;
}
