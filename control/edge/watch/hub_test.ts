import { deepEqual, equal, rejects } from "node:assert/strict";
import { HeddleError } from "@heddle/proto/error";
import type { Published } from "../../core/published.ts";
import { ROUTER_QUEUE_MAX, WatchHub } from "./hub.ts";
import { endpoint, FakeRouter, NOTHING } from "./publication_fake.ts";

const at = (sequence: number): Published => ({
  ...NOTHING,
  revision: { term: 1, sequence },
  endpoints: new Map([["r0", endpoint("r0", sequence)]]),
});

Deno.test("WatchHub gives a snapshot and then deltas, also those that came in between", async () => {
  const hub = new WatchHub(at(1));
  const leave = new AbortController();
  const stream = hub.watch("a/1", leave.signal);
  const router = new FakeRouter();
  const receive = async () => {
    const { value } = await stream.next();
    if (value !== undefined) router.receive(value);
  };
  await receive();
  deepEqual(router.revision, { term: 1, sequence: 1 });
  hub.publish(at(2));
  hub.publish(at(3));
  await receive();
  await receive();
  deepEqual(router.revision, { term: 1, sequence: 3 });
  equal(router.endpoints.get("r0")?.weight, 3);
  equal(hub.size, 1);
  const waiting = stream.next();
  leave.abort();
  equal((await waiting).done, true);
  equal(hub.size, 0);
});

Deno.test("WatchHub goes on with a snapshot that it has begun, and then brings it up to date", async () => {
  const many = (sequence: number): Published => ({
    ...NOTHING,
    revision: { term: 1, sequence },
    endpoints: new Map(
      Array.from({ length: 2_500 }, (_, index) => [`r${index}`, endpoint(`r${index}`, sequence)]),
    ),
  });
  const hub = new WatchHub(many(1));
  const never = new AbortController().signal;
  const early = hub.watch("early/1", never);
  const router = new FakeRouter();
  const receive = async (times: number) => {
    for (let count = 0; count < times; count++) {
      const { value } = await early.next();
      if (value !== undefined) router.receive(value);
    }
  };
  await receive(1);
  hub.publish(many(2));
  const late = hub.watch("late/1", never);
  const second = new FakeRouter();
  for (let count = 0; count < 3; count++) {
    const { value } = await late.next();
    if (value !== undefined) second.receive(value);
  }
  await receive(2);
  deepEqual([router.revision.sequence, router.endpoints.get("r9")?.weight], [1, 1]);
  await receive(3);
  deepEqual(router.endpoints, many(2).endpoints);
  deepEqual(second.endpoints, many(2).endpoints);
  await early.return(undefined);
  await late.return(undefined);
  equal(hub.size, 0);
});

Deno.test("WatchHub ends the stream of a router that does not read, and of no other", async () => {
  const hub = new WatchHub(NOTHING);
  const never = new AbortController().signal;
  const slow = hub.watch("slow/1", never);
  const quick = hub.watch("quick/1", never);
  await slow.next();
  await quick.next();
  for (let sequence = 1; sequence <= ROUTER_QUEUE_MAX + 1; sequence++) {
    hub.publish(at(sequence));
    equal((await quick.next()).done, false);
  }
  await rejects(slow.next(), { code: "exhausted", message: /watch of router "slow\/1"/ });
  equal(hub.size, 1);
  const back = hub.watch("slow/1", never);
  const router = new FakeRouter();
  const { value } = await back.next();
  if (value !== undefined) router.receive(value);
  equal(router.endpoints.get("r0")?.weight, ROUTER_QUEUE_MAX + 1);
  hub.closeAll(new HeddleError("unavailable", "control stops"));
  await rejects(back.next(), /control stops/);
  await rejects(quick.next(), /control stops/);
});
