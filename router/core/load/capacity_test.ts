import { equal, ok } from "node:assert/strict";
import { type Capacity, CAPACITY_FIRST, type Heard, heard, refused } from "./capacity.ts";

function after(looks: readonly Partial<Heard>[], from: Capacity = CAPACITY_FIRST): Capacity {
  return looks.reduce<Capacity>(
    (capacity, look) =>
      heard(capacity, { running: 0, waiting: 0, kvUsage: 0, inFlight: 0, ...look }),
    from,
  );
}

const FULL = { running: 24, waiting: 10, inFlight: 34 };

Deno.test("heard() finds what an engine runs when it is full, from two looks", () => {
  equal(after([FULL]).requests, 64);
  equal(after([FULL, FULL]).requests, 24);
  equal(after([FULL, FULL]).limit, 24);
});

Deno.test("heard() does not take what waits between two steps for being full", () => {
  const moments = [
    { running: 20, waiting: 3, inFlight: 23 },
    { running: 30, waiting: 4, inFlight: 34 },
    { running: 22, waiting: 2, inFlight: 24 },
    { running: 25, waiting: 1, inFlight: 26 },
  ];
  equal(after(moments).requests, 64);
});

Deno.test("heard() grows fast until the first limit, and only while all of it is used", () => {
  equal(after([{ running: 10, inFlight: 10 }]).requests, 64);
  const grown = after(Array.from({ length: 6 }, (_, index) => ({
    running: 64 * 1.5 ** index,
    inFlight: 64 * 1.5 ** index,
  })));
  ok(grown.requests > 256);
});

Deno.test("heard() tries for more after a while, gently, and goes back at the first sign", () => {
  const found = after([FULL, FULL]);
  const used = { running: 24, waiting: 0, inFlight: 24 };
  const later = after(Array.from({ length: 61 }, () => used), found);
  ok(later.requests > 24 && later.requests < 27);
  equal(after([{ running: 24, waiting: 2, inFlight: 26 }], later).requests, 24);
  // An engine that takes more shows it.
  const more = { running: later.requests, inFlight: later.requests };
  ok(after([more], later).requests > later.requests);
});

Deno.test("heard() sees a full cache, and prompts that come faster than they are read", () => {
  const cache = { waiting: 2, kvUsage: 0.97 };
  equal(after([{ ...cache, running: 40 }, { ...cache, running: 30 }]).requests, 30);
  equal(after([{ running: 12, waiting: 30 }, { running: 8, waiting: 40 }]).requests, 8);
});

Deno.test("heard() leaves it alone where an engine does not say, and refused() lowers it", () => {
  const silent = { running: undefined, waiting: undefined, inFlight: 100 };
  equal(after([silent, silent]).requests, 64);
  equal(refused(CAPACITY_FIRST, 10).requests, 10);
  equal(refused(CAPACITY_FIRST, 0).requests, 4);
});
