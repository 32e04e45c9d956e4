import { deepEqual, equal, ok } from "node:assert/strict";
import fc from "fast-check";
import { FairQueue, type Queued } from "./fair_queue.ts";

function item(tenant: string, tokens: number, bytes = 1): Queued {
  return { tenant, tokens, bytes };
}

Deno.test("FairQueue gives tenants equal parts in tokens, whatever their requests are", () => {
  const queue = new FairQueue<Queued>();
  for (let index = 0; index < 1_000; index++) queue.push(item("small", 10));
  for (let index = 0; index < 100; index++) queue.push(item("large", 100));
  const tokens = new Map<string, number>();
  for (let index = 0; index < 500; index++) {
    const taken = queue.take();
    if (taken === undefined) break;
    tokens.set(taken.tenant, (tokens.get(taken.tenant) ?? 0) + taken.tokens);
  }
  ok(Math.abs((tokens.get("small") ?? 0) - (tokens.get("large") ?? 0)) <= 100);
});

Deno.test("FairQueue lets nobody save up, and blames nobody for idle capacity", () => {
  const queue = new FairQueue<Queued>();
  // One tenant alone used what nobody else wanted.
  for (let index = 0; index < 1_000; index++) queue.start(item("a", 100));
  for (let index = 0; index < 4; index++) {
    queue.push(item("a", 100));
    queue.push(item("b", 100));
  }
  const order = Array.from({ length: 8 }, () => queue.take()?.tenant).join("");
  ok(["babababa", "abababab", "bbababaa", "bababaab"].includes(order), order);
});

Deno.test("FairQueue charges what a request really cost", () => {
  const queue = new FairQueue<Queued>();
  for (let index = 0; index < 3; index++) queue.push(item("a", 10));
  for (let index = 0; index < 3; index++) queue.push(item("b", 10));
  equal(queue.take()?.tenant, "a");
  queue.settle("a", 1_000);
  deepEqual([queue.take(), queue.take(), queue.take()].map((taken) => taken?.tenant), [
    "b",
    "b",
    "b",
  ]);
});

Deno.test("FairQueue keeps a tenant's order, and its counts, whoever leaves", () => {
  const ops = fc.array(
    fc.record({
      op: fc.constantFrom("push", "take", "remove"),
      tenant: fc.constantFrom("a", "b", "c"),
      tokens: fc.integer({ min: 1, max: 100 }),
      which: fc.nat(10),
    }),
    { maxLength: 60 },
  );
  fc.assert(fc.property(ops, (steps) => {
    const queue = new FairQueue<Queued>();
    const model: Queued[] = [];
    for (const { op, tenant, tokens, which } of steps) {
      if (op === "push") {
        const pushed = item(tenant, tokens, tokens);
        queue.push(pushed);
        model.push(pushed);
      } else if (op === "take") {
        const taken = queue.take();
        equal(taken === undefined, model.length === 0);
        if (taken === undefined) continue;
        equal(model.find((each) => each.tenant === taken.tenant), taken);
        model.splice(model.indexOf(taken), 1);
      } else {
        const [left] = model.splice(which, 1);
        if (left === undefined) continue;
        ok(queue.remove(left));
        ok(!queue.remove(left));
      }
      equal(queue.size, model.length);
      equal(queue.bytes, model.reduce((sum, { bytes }) => sum + bytes, 0));
    }
  }));
});
