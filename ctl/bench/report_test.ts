import { equal } from "node:assert/strict";
import type { Level } from "./measured.ts";
import { formatFound, formatLevel, HEAD } from "./report.ts";

const percentiles = (p50: number, p99: number) => ({ p50, p90: p99, p99 });

const LEVEL: Level = {
  concurrency: 16,
  seconds: 10,
  answered: 123,
  failed: 0,
  within: 0.992,
  goodput: 12.2,
  completionTokensPerS: 1_561.4,
  ttftMs: percentiles(81.4, 912),
  tpotMs: percentiles(9.96, 31.25),
  durationMs: percentiles(1_300, 2_000),
  cached: 0.351,
  error: undefined,
};

const NOTHING = { p50: undefined, p90: undefined, p99: undefined };

const BROKEN: Level = {
  ...LEVEL,
  concurrency: 256,
  within: 0,
  goodput: 0,
  failed: 17,
  completionTokensPerS: 0,
  ttftMs: NOTHING,
  tpotMs: NOTHING,
  cached: undefined,
  error: "503:\u001b[2J no replica",
};

const SLO = { ttftMs: 1_000, tpotMs: 40 };

Deno.test("bench: the table of levels, in which what was not measured is a dash", () => {
  equal(
    [HEAD, formatLevel(LEVEL), formatLevel(BROKEN)].join("\n"),
    `AT A TIME  GOOD/S  WITHIN  TTFT p50   p99 ms  TPOT p50   p99 ms  TOKENS/S  CACHED  FAILED
       16   12.20    99 %        81      912      10.0     31.3      1561    35 %       0
      256    0.00     0 %         -        -         -        -         0       -      17`,
  );
});

Deno.test("bench: the answer says the best, whether it is stable, and whether there is more", () => {
  const found = { best: LEVEL, stable: true, spread: 0.031, open: false, levels: [LEVEL] };
  const best = "\nBest at 16 at a time: 12.20 requests a second within the promise (first token " +
    "within 1000 ms and 40 ms a token after it), 99 % of all\n";
  equal(formatFound(found, SLO), `${best}Repeated measurements agree within 3 %\n`);
  equal(
    formatFound({ ...found, stable: false, spread: 0.2, open: true }, SLO),
    `${best}Not stable: repeated measurements differ by 20 %. Is there other traffic?\n` +
      "It was still rising at the largest load: raise --max to go on\n",
  );
  equal(
    formatFound({ ...found, best: undefined, levels: [BROKEN] }, SLO),
    "\nNo request kept the promise (first token within 1000 ms and 40 ms a token after it), even " +
      "one at a time: 503: [2J no replica\n",
  );
});
