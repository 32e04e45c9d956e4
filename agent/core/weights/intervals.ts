/**
 * Which bytes of a file are there already. Parts of a file arrive out of order over several
 * connections; what was written is noted in a journal, and read back after a crash.
 */

/** From `start`, which is in it, to `end`, which is not. */
export interface Interval {
  readonly start: number;
  readonly end: number;
}

/** Sorted, apart from each other, and none is empty. */
export type Intervals = readonly Interval[];

/** The same bytes, in order. */
export function merged(intervals: Iterable<Interval>): Intervals {
  const sorted = [...intervals].filter(({ start, end }) => end > start)
    .sort((a, b) => a.start - b.start);
  const result: { start: number; end: number }[] = [];
  for (const { start, end } of sorted) {
    const last = result.at(-1);
    if (last !== undefined && start <= last.end) last.end = Math.max(last.end, end);
    else result.push({ start, end });
  }
  return result;
}

/** How many bytes there are. */
export function sizeOf(intervals: Intervals): number {
  return intervals.reduce((sum, { start, end }) => sum + end - start, 0);
}

/** What is missing of `total` bytes, in pieces of at most `pieceMax`. */
export function missing(had: Intervals, total: number, pieceMax: number): Intervals {
  const gaps: Interval[] = [];
  let at = 0;
  for (const { start, end } of [...had, { start: total, end: total }]) {
    for (; at < Math.min(start, total); at = Math.min(at + pieceMax, start)) {
      gaps.push({ start: at, end: Math.min(at + pieceMax, start, total) });
    }
    at = Math.max(at, end);
  }
  return gaps;
}

/** A line of a journal. */
export function journalLine({ start, end }: Interval): string {
  return `${start} ${end}\n`;
}

/**
 * What a journal says, its first line aside. A line that was cut short by a crash counts for nothing,
 * and so does one that cannot be true of a file of `total` bytes.
 */
export function readJournal(lines: string, total: number): Intervals {
  const found: Interval[] = [];
  for (const [, start, end] of lines.matchAll(/^(\d{1,15}) (\d{1,15})\n/gm)) {
    const interval = { start: Number(start), end: Number(end) };
    if (interval.end > interval.start && interval.end <= total) found.push(interval);
  }
  return merged(found);
}
