import assert from "node:assert/strict";
import { Meter } from "./meter.ts";

Deno.test("a limit of one a minute passes one a minute", () => {
  const meter = new Meter(1, 0);
  meter.take(1, 300);
  assert.equal(meter.waitMs(1, 300), 60_000);
  assert.ok(Math.abs(meter.waitMs(1, 60_299) - 1) < 1e-6);
  assert.equal(meter.waitMs(1, 60_300), 0);
});

Deno.test("a limit of nothing passes nothing", () => {
  assert.equal(new Meter(0, 0).waitMs(1, 0), Infinity);
  assert.equal(new Meter(0, 0).left(0), 0);
});

Deno.test("more than the limit at once counts as the limit", () => {
  const meter = new Meter(100, 0);
  assert.equal(meter.waitMs(1_000_000, 0), 0);
  meter.take(meter.capped(1_000_000), 0);
  assert.equal(meter.left(0), 0);
});

Deno.test("what was used beyond the reservation is owed until it has melted", () => {
  const meter = new Meter(60, 0);
  const taken = meter.take(10, 0);
  meter.settle(taken, { units: 10, used: 180 }, 0);
  // 180 owed melt at one a second; one fits once 59 are left.
  assert.equal(meter.waitMs(1, 0), 121_000);
  assert.equal(meter.fullMs(0), 180_000);
  assert.equal(meter.waitMs(1, 121_000), 0);
});

Deno.test("what was reserved and not used comes back at once", () => {
  const meter = new Meter(60, 0);
  const taken = meter.take(60, 0);
  // Ten have melted, of which the guard on the minute leaves six.
  assert.equal(meter.left(10_000), 6);
  meter.settle(taken, { units: 60, used: 6 }, 10_000);
  assert.equal(meter.left(10_000), 60);
});

Deno.test("the minute after a pause holds no second burst", () => {
  const meter = new Meter(60, 0);
  meter.take(60, 0);
  let passed = 60;
  for (let now = 0; now < 60_000; now += 100) {
    if (meter.waitMs(1, now) > 0) continue;
    meter.take(1, now);
    passed++;
  }
  assert.equal(passed, 66);
});

Deno.test("another limit keeps what is owed", () => {
  const meter = new Meter(60, 0);
  meter.take(60, 0);
  meter.change(120, 0);
  assert.equal(meter.left(0), 60);
  meter.change(30, 0);
  assert.equal(meter.left(0), 0);
  assert.equal(meter.waitMs(1, 0), 62_000);
});

Deno.test("a share refills at its own rate, and credit comes on top", () => {
  const meter = new Meter(60, 0, 0);
  assert.equal(meter.left(0), 0);
  assert.equal(meter.missing(2, 0), 2);
  meter.grant({ share: 30, credit: 2 }, 0);
  assert.equal(meter.left(0), 2);
  meter.take(2, 0);
  assert.equal(meter.waitMs(1, 0), 2_000);
  assert.equal(meter.left(60_000), 30);
});

Deno.test("a share waits as long as control says that it takes, and only for what is missing", () => {
  const meter = new Meter(2, 0, 0);
  meter.grant({ share: 2, credit: 1, roomInMs: 0 }, 0);
  // The other of the two went through another router, so this one's own minute has room.
  meter.take(1, 0);
  assert.equal(meter.waitMs(1, 0), 30_000);
  meter.grant({ share: 0.1, credit: 0, roomInMs: 58_000 }, 2_000);
  assert.equal(meter.waitMs(1, 2_000), 58_000);
  assert.equal(meter.fullMs(2_000), 58_000);
  // A later answer, to a question about nothing, takes nothing of it back.
  meter.grant({ share: 0.1, credit: 0, roomInMs: 0 }, 12_000);
  assert.equal(meter.waitMs(1, 12_000), 48_000);
  meter.grant({ share: 0.1, credit: 1, roomInMs: 0 }, 12_000);
  assert.equal(meter.waitMs(1, 12_000), 0);
  meter.take(1, 12_000);
  meter.change(60, 12_000);
  assert.ok(meter.waitMs(1, 12_000) < 40_000, "another limit is another wait");
});

Deno.test("credit beyond the share is kept, and is what a small share can give back", () => {
  const meter = new Meter(3, 0, 0);
  meter.grant({ share: 1, credit: 3 }, 0);
  assert.equal(meter.left(30_000), 3);
  assert.equal(meter.giveBack(1, 30_000), 2);
  assert.equal(meter.left(30_000), 1);
  meter.grant({ share: 0, credit: 0 }, 30_000);
  meter.take(1, 30_000);
  // Only control can help now; the limit says how long it takes at most.
  assert.equal(meter.waitMs(1, 30_000), 20_000);
});
