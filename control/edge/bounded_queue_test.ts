import { deepEqual, equal, rejects } from "node:assert/strict";
import { BoundedQueue } from "./bounded_queue.ts";

async function drain<T>(queue: BoundedQueue<T>): Promise<T[]> {
  const taken: T[] = [];
  for await (const item of queue) taken.push(item);
  return taken;
}

Deno.test("BoundedQueue gives items in order, also those that waited when it ended", async () => {
  const queue = new BoundedQueue<number>(3);
  const all = drain(queue);
  queue.push(1);
  await Promise.resolve();
  queue.push(2);
  queue.push(3);
  queue.end();
  deepEqual(await all, [1, 2, 3]);
});

Deno.test("BoundedQueue refuses what exceeds its limit, and adds nothing then", async () => {
  const queue = new BoundedQueue<number>(2);
  deepEqual([queue.push(1), queue.push(2), queue.push(3)], [true, true, false]);
  deepEqual(await queue.next(), { done: false, value: 1 });
  equal(queue.push(4), true);
  queue.end();
  equal(queue.push(5), false);
  deepEqual(await drain(queue), [2, 4]);
});

Deno.test("BoundedQueue.fail() reaches a waiting consumer and drops what waits", async () => {
  const waiting = new BoundedQueue<number>(2);
  const next = waiting.next();
  waiting.fail(new Error("replaced"));
  await rejects(next, /replaced/);
  const filled = new BoundedQueue<number>(2);
  filled.push(1);
  filled.fail(new Error("full"));
  filled.end();
  await rejects(drain(filled), /full/);
});

Deno.test("BoundedQueue ends when its consumer leaves", async () => {
  const queue = new BoundedQueue<number>(2);
  queue.push(1);
  queue.push(2);
  for await (const _ of queue) break;
  equal(queue.ended, true);
  equal(queue.push(3), false);
  equal(queue.size, 0);
});
