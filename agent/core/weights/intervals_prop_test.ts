import { deepEqual, equal, ok } from "node:assert/strict";
import fc from "fast-check";
import { journalLine, merged, missing, readJournal, sizeOf } from "./intervals.ts";

const TOTAL = 200;
const interval = fc.tuple(fc.nat(TOTAL), fc.nat(TOTAL)).map(([a, b]) => ({
  start: Math.min(a, b),
  end: Math.max(a, b),
}));
const some = fc.array(interval, { maxLength: 12 });

Deno.test("missing() and what is there make the whole, and never meet", () => {
  fc.assert(fc.property(some, fc.integer({ min: 1, max: 60 }), (given, piece) => {
    const had = merged(given);
    const gaps = missing(had, TOTAL, piece);
    equal(sizeOf(had) + gaps.reduce((sum, { start, end }) => sum + end - start, 0), TOTAL);
    for (const { start, end } of gaps) {
      ok(end > start && end - start <= piece);
      ok(had.every((each) => each.end <= start || each.start >= end));
    }
    deepEqual(merged([...had, ...gaps]), [{ start: 0, end: TOTAL }]);
  }));
});

Deno.test("readJournal() reads what was written, wherever the last line was cut", () => {
  fc.assert(fc.property(some, fc.nat(20), (given, cut) => {
    const lines = given.map(journalLine);
    const whole = lines.join("");
    deepEqual(readJournal(whole, TOTAL), merged(given));
    const short = whole.slice(0, Math.max(0, whole.length - cut));
    const left = readJournal(short, TOTAL);
    for (const { start, end } of left) {
      ok(merged(given).some((each) => each.start <= start && each.end >= end));
    }
  }));
});

Deno.test("readJournal() takes nothing that cannot be true", () => {
  deepEqual(readJournal("0 300\n5 5\n9 3\nx y\n1 2", TOTAL), []);
});
