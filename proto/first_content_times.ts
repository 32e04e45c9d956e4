/**
 * Times to first content as routers count them, in buckets that are the same everywhere: so what
 * several routers say adds up, which percentiles do not. A bucket is a fifth wider than the one before
 * it, so what is read back is off by at most as much.
 */

/** Buckets to a doubling. */
const PER_DOUBLING = 4;

/** Of the last bucket, which also has everything longer: it ends at 2^20 ms, 17 minutes. */
export const LAST_BUCKET = 80;

/** Where a time in ms is counted. */
export function bucketOf(ms: number): number {
  if (!(ms > 1)) return 0;
  return Math.min(LAST_BUCKET, Math.ceil(Math.log2(ms) * PER_DOUBLING));
}

/** Adds what a router reported to a sum. Counts beyond the last bucket are of the last. */
export function addCounts(sum: number[], counts: readonly number[]): void {
  for (const [index, count] of counts.entries()) {
    const bucket = Math.min(index, LAST_BUCKET);
    while (sum.length <= bucket) sum.push(0);
    sum[bucket] = (sum[bucket] ?? 0) + count;
  }
}

/**
 * The time in ms that `share` of them do not exceed, evenly between the ends of its bucket; undefined
 * where there is none. `share` is from 0 to 1.
 */
export function percentileMs(counts: readonly number[], share: number): number | undefined {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return undefined;
  const wanted = share * total;
  let before = 0;
  for (const [index, count] of counts.entries()) {
    if (count > 0 && before + count >= wanted) {
      const from = index === 0 ? 0 : endMs(index - 1);
      return from + (endMs(index) - from) * (wanted - before) / count;
    }
    before += count;
  }
  return endMs(LAST_BUCKET);
}

function endMs(bucket: number): number {
  return 2 ** (bucket / PER_DOUBLING);
}
