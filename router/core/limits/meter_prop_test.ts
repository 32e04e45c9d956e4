import assert from "node:assert/strict";
import fc from "fast-check";
import { Meter } from "./meter.ts";

const LIMIT = fc.integer({ min: 1, max: 100_000 });
const STEPS = fc.array(
  fc.record({
    waitMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 90_000 })),
    share: fc.double({ min: 0.001, max: 1, noNaN: true }),
  }),
  { maxLength: 120 },
);

/** Sends every step's units when they pass, and tells what passed when. */
function play(limit: number, steps: readonly { waitMs: number; share: number }[]) {
  let now = 5_000;
  const meter = new Meter(limit, now);
  const passed: { at: number; units: number }[] = [];
  for (const { waitMs, share } of steps) {
    now += waitMs;
    const units = Math.max(1, Math.floor(limit * share));
    if (meter.waitMs(units, now) > 0) continue;
    meter.take(units, now);
    passed.push({ at: now, units });
  }
  return { meter, passed, now };
}

Deno.test("no minute holds more than the limit and a tenth, whoever comes when", () => {
  fc.assert(fc.property(LIMIT, STEPS, (limit, steps) => {
    const { passed } = play(limit, steps);
    for (const [index, { at }] of passed.entries()) {
      let sum = 0;
      for (const each of passed.slice(index)) if (each.at - at < 60_000) sum += each.units;
      assert.ok(sum <= limit * 1.1 + 1e-3, `${sum} of ${limit}`);
    }
  }));
});

Deno.test("in the long run the limit holds, with one minute's worth ahead", () => {
  fc.assert(fc.property(LIMIT, STEPS, (limit, steps) => {
    const { passed, now } = play(limit, steps);
    const sum = passed.reduce((all, { units }) => all + units, 0);
    assert.ok(sum <= limit * (1 + (now - 5_000) / 60_000) + 1e-3);
  }));
});

Deno.test("waitMs() is exact: what must wait passes then, and not a moment earlier", () => {
  fc.assert(fc.property(LIMIT, STEPS, fc.integer({ min: 1 }), (limit, steps, units) => {
    const { meter, now } = play(limit, steps);
    const wait = meter.waitMs(units, now);
    if (wait === 0) return;
    assert.ok(meter.waitMs(units, now + Math.max(0, wait - 2)) > 0);
    assert.equal(meter.waitMs(units, now + wait + 0.01), 0);
  }));
});

Deno.test("a request that gives all back leaves the meter as if it had never been", () => {
  fc.assert(
    fc.property(LIMIT, STEPS, fc.integer({ min: 0, max: 70_000 }), (limit, steps, later) => {
      const one = play(limit, steps);
      const other = play(limit, steps);
      const taken = one.meter.take(limit, one.now);
      one.meter.settle(taken, { units: limit, used: 0 }, one.now + later);
      // What had melted of it by then is gone for good: never more is left than without it.
      assert.ok(one.meter.left(one.now + later) <= other.meter.left(one.now + later));
      if (later === 0) assert.equal(one.meter.left(one.now), other.meter.left(other.now));
      assert.equal(one.meter.left(one.now + later + 180_000), limit);
    }),
  );
});

Deno.test("a full meter passes exactly the limit at once", () => {
  fc.assert(fc.property(fc.integer({ min: 1, max: 500 }), (limit) => {
    const meter = new Meter(limit, 0);
    let passed = 0;
    while (meter.waitMs(1, 0) === 0) {
      assert.equal(meter.left(0), limit - passed);
      meter.take(1, 0);
      passed++;
    }
    assert.equal(passed, limit);
    assert.equal(meter.left(0), 0);
  }));
});
