import { deepEqual, equal, ok, throws } from "node:assert/strict";
import fc from "fast-check";
import { Calendar } from "./periods.ts";

const HOUR_MS = 3_600_000;
const at = (text: string) => Date.parse(text);
const iso = (ms: number) => new Date(ms).toISOString();

Deno.test("Calendar.periods() goes by the wall of the place", () => {
  const cases = [
    ["UTC", "2026-11-30T23:59:59Z", "d2026-11-30", "m2026-11", "2026-11-30T23:00:00.000Z"],
    [
      "Europe/Berlin",
      "2026-11-30T23:30:00Z",
      "d2026-12-01",
      "m2026-12",
      "2026-11-30T23:00:00.000Z",
    ],
    [
      "America/New_York",
      "2027-01-01T04:59:00Z",
      "d2026-12-31",
      "m2026-12",
      "2027-01-01T04:00:00.000Z",
    ],
    // Hours begin at half past.
    ["Asia/Kolkata", "2026-06-01T18:45:00Z", "d2026-06-02", "m2026-06", "2026-06-01T18:30:00.000Z"],
  ] as const;
  for (const [zone, time, day, month, hour] of cases) {
    const found = new Calendar(zone).periods(at(time));
    deepEqual([found.day, found.month, iso(found.hour)], [day, month, hour], zone);
  }
  throws(() => new Calendar("Mars/Olympus"), RangeError);
});

Deno.test("Calendar.endOf() and dayOf() know days of 23 and 25 hours", () => {
  const berlin = new Calendar("Europe/Berlin");
  const [spring, autumn] = [at("2026-03-29T10:00:00Z"), at("2026-10-25T10:00:00Z")];
  equal((berlin.endOf("day", spring) - berlin.dayOf(spring)) / HOUR_MS, 23);
  equal((berlin.endOf("day", autumn) - berlin.dayOf(autumn)) / HOUR_MS, 25);
  equal(iso(berlin.endOf("month", spring)), "2026-03-31T22:00:00.000Z");
  equal(
    iso(new Calendar("UTC").endOf("month", at("2028-02-01T00:00:00Z"))),
    "2028-03-01T00:00:00.000Z",
  );
});

Deno.test("Calendar's periods follow one another without a gap, wherever it is", () => {
  const zone = fc.constantFrom("UTC", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe");
  const time = fc.integer({ min: at("2020-01-01T00:00:00Z"), max: at("2035-01-01T00:00:00Z") });
  fc.assert(
    fc.property(zone, time, (name, ms) => {
      const calendar = new Calendar(name);
      for (const period of ["day", "month"] as const) {
        const end = calendar.endOf(period, ms);
        ok(end > ms);
        equal(calendar.periods(end - 1)[period], calendar.periods(ms)[period]);
        ok(calendar.periods(end)[period] > calendar.periods(ms)[period]);
      }
      const day = calendar.dayOf(ms);
      ok(day <= ms && calendar.periods(day).day === calendar.periods(ms).day);
      ok(calendar.periods(day - 1).day < calendar.periods(day).day);
      const { hour } = calendar.periods(ms);
      ok(hour <= ms && ms - hour <= 2 * HOUR_MS);
    }),
    { numRuns: 60 },
  );
});
