import { deepEqual, equal, rejects } from "node:assert/strict";
import { Code, createClient } from "@connectrpc/connect";
import { LiveService, type WatchEventsResponse } from "@heddle/proto/gen/live";
import { HeddleError } from "@heddle/proto/error";
import { refused } from "../admin/admin_fake.ts";
import { operatorName } from "../caller.ts";
import { ALL_MODELS, type EventItem, type TrafficSample } from "../console/wire.ts";
import { Listener, REALM } from "../listener_fake.ts";
import { liveRpc } from "./live_rpc.ts";

const item = (subject: string): EventItem => ({
  atMs: 1_800_000_000_000,
  kind: "node",
  subject,
  text: "ready → lost",
  bad: true,
  next: "repair it",
});

/** What a follower is told next. */
async function next(follow: AsyncIterator<WatchEventsResponse>): Promise<WatchEventsResponse> {
  const told = await follow.next();
  if (told.done === true) throw new Error("the stream has ended");
  return told.value;
}

const BANDS = { platinum: 0, gold: 2, silver: 0, bronze: 1 };

async function bench() {
  const events = new Map<string, EventItem>([["000000001", item("n1")], ["000000002", item("n2")]]);
  const sample: TrafficSample = {
    atS: 1,
    requests: 2.5,
    failures: 0.5,
    sloMisses: 0,
    inFlight: 7,
    waiting: 3,
    platinum: null,
    gold: null,
    silver: null,
    bronze: null,
    ttftP50Ms: 80,
    ttftP99Ms: 900,
    cacheShare: null,
  };
  let leads = true;
  const listener = await Listener.start({
    roles: ["operator"],
    routes: (router) =>
      router.service(
        LiveService,
        liveRpc({
          by: (context) => operatorName(context, REALM),
          demandLead() {
            if (!leads) throw new HeddleError("failed_precondition", "b leads");
          },
          happenings: () => ({ events: () => events }),
          traffic: () => ({
            latest: () => new Map([["m", { ...sample, ...BANDS }], [ALL_MODELS, sample]]),
          }),
        }),
      ),
  });
  return {
    client: createClient(LiveService, await listener.connect("operator", "ann")),
    happens: (subject: string) => events.set(`00000000${events.size + 1}`, item(subject)),
    loseLead: () => leads = false,
    [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose](),
  };
}

Deno.test("LiveService tells what was, follows what comes, and goes on where a caller was", async () => {
  await using control = await bench();
  const { client } = control;
  const follow = client.watchEvents({ follow: true })[Symbol.asyncIterator]();
  const first = await next(follow);
  deepEqual(first.events.map(({ subject, number }) => [subject, number]), [["n1", 1n], [
    "n2",
    2n,
  ]]);
  equal(first.events[0]?.next, "repair it");
  control.happens("n3");
  const second = await next(follow);
  deepEqual(second.events.map(({ subject }) => subject), ["n3"]);
  const { source } = first;
  const told = async (request: { after: bigint; source: string }) => {
    const all = await Array.fromAsync(client.watchEvents(request));
    return all.flatMap(({ events }) => events.map(({ subject }) => subject));
  };
  deepEqual(await told({ after: 2n, source }), ["n3"]);
  deepEqual(await told({ after: 2n, source: "another" }), ["n1", "n2", "n3"]);
  control.loseLead();
  await rejects(follow.next(), refused(Code.FailedPrecondition, /b leads/));
});

Deno.test("LiveService tells the newest traffic, and the sum apart", async () => {
  await using control = await bench();
  const { models, all } = await control.client.listTraffic({});
  deepEqual(
    models.map(({ model, requestsPerSecond, waiting }) => [model, requestsPerSecond, waiting]),
    [
      ["m", 2.5, 3],
    ],
  );
  equal(all?.inFlight, 7);
  const [{ queue } = { queue: undefined }] = models;
  deepEqual([queue?.gold, queue?.bronze], [2, 1]);
  equal(all.queue, undefined, "what a router does not tell is no zero");
  deepEqual([all.ttftP50Ms, all.ttftP99Ms, all.cacheHitShare], [80, 900, undefined]);
});
