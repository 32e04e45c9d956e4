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
