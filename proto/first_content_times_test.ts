import { deepEqual, equal, ok } from "node:assert/strict";
import { addCounts, bucketOf, LAST_BUCKET, percentileMs } from "./first_content_times.ts";

function countsOf(...times: number[]): number[] {
  const counts: number[] = [];
  for (const ms of times) addCounts(counts, [...Array<number>(bucketOf(ms)).fill(0), 1]);
  return counts;
}

Deno.test("bucketOf() puts a time into the first bucket that reaches it, and any time somewhere", () => {
  deepEqual([0, 1, 1.1, 2, 2.01, 1_024].map(bucketOf), [0, 0, 1, 4, 5, 40]);
  deepEqual([2 ** 20, 2 ** 21, Infinity].map(bucketOf), [LAST_BUCKET, LAST_BUCKET, LAST_BUCKET]);
  deepEqual([-5, NaN].map(bucketOf), [0, 0]);
});

Deno.test("percentileMs() is within a fifth of the time itself", () => {
  for (const ms of [3, 47, 250, 1_999, 60_000]) {
    for (const share of [0.5, 0.99, 1]) {
      const found = percentileMs(countsOf(ms), share) ?? NaN;
      ok(found >= ms / 1.2 && found <= ms * 1.2, `${ms} ms is read as ${found}`);
    }
  }
});

Deno.test("percentileMs() finds the slow one in a hundred only where there is more than one", () => {
  const quick = Array<number>(99).fill(100);
  ok((percentileMs(countsOf(...quick, 5_000), 0.5) ?? NaN) < 120);
  ok((percentileMs(countsOf(...quick, 5_000), 0.99) ?? NaN) < 120);
  ok((percentileMs(countsOf(...quick, 5_000, 5_000), 0.99) ?? NaN) > 4_000);
});

Deno.test("percentileMs() knows nothing of nothing, which is not 0 ms", () => {
  equal(percentileMs([], 0.99), undefined);
  equal(percentileMs([0, 0, 0], 0.5), undefined);
});

Deno.test("addCounts() makes of two routers' counts what one would have counted", () => {
  const sum = countsOf(5, 80, 3_000);
  addCounts(sum, countsOf(5, 100_000));
  deepEqual(sum, countsOf(5, 5, 80, 3_000, 100_000));
  addCounts(sum, [...Array<number>(LAST_BUCKET + 20).fill(0), 7]);
  equal(sum.length, LAST_BUCKET + 1, "what no bucket is for is longer than all");
  equal(sum[LAST_BUCKET], 7);
});
