import { deepEqual, equal } from "node:assert/strict";
import { afterReading, linkProblems } from "./link_watch.ts";
import { parseCounter } from "./port_counters.ts";

const reading = (values: Record<string, number>) => new Map(Object.entries(values));

Deno.test("parseCounter() knows numbers from everything else that stands in their place", () => {
  deepEqual(
    ["0", "255", "N/A (no PMA)", "", undefined, "-1", "1e9"].map(parseCounter),
    [0, 255, undefined, undefined, undefined, undefined, undefined],
  );
});

Deno.test("linkProblems() tells what was added, not what stood there before", () => {
  const first = afterReading(undefined, reading({ link_downed: 7, symbol_error: 9 }), 0);
  equal(linkProblems(new Map([["mlx5_0 port 1", first]]), 0).length, 0);
  const second = afterReading(first, reading({ link_downed: 9, symbol_error: 9 }), 30_000);
  const [problem] = linkProblems(new Map([["mlx5_0 port 1", second]]), 30_000);
  equal(problem?.reason, "hca_link_unstable");
  equal(problem?.detail.includes("link_downed +2."), true);
});

Deno.test("linkProblems() takes a reset counter and a merely noisy link for nothing", () => {
  const first = afterReading(undefined, reading({ link_downed: 7, symbol_error: 1 }), 0);
  const reset = afterReading(first, reading({ link_downed: 0, symbol_error: 40 }), 1);
  deepEqual(linkProblems(new Map([["a", reset]]), 1), []);
  const unread = afterReading(first, reading({}), 1);
  deepEqual(linkProblems(new Map([["a", unread]]), 1), []);
});

Deno.test("linkProblems() says when a counter can tell no more, and forgets in time", () => {
  const first = afterReading(undefined, reading({ link_error_recovery: 250 }), 0);
  const full = afterReading(first, reading({ link_error_recovery: 255 }), 1);
  const records = new Map([["a", full]]);
  equal(linkProblems(records, 1)[0]?.detail.includes("+5 (its maximum)"), true);
  deepEqual(linkProblems(records, 600_001), []);
});
