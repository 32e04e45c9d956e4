import { deepEqual, equal, ok } from "node:assert/strict";
import { step, wakeAt } from "../lifecycle.ts";
import type { ShardEvent } from "../event.ts";
import type { Shard } from "../shard.ts";
import { aShard, PROCESS } from "../shard_fake.ts";
import { statusOf } from "../status.ts";

const LOST = { reason: "nvlink_lost", message: "GPU 0 has 17 of its 18 NVLinks left" };
const BAD: ShardEvent = { type: "links_judged", fault: LOST };
const WELL: ShardEvent = { type: "links_judged" };
const READY: ShardEvent = { type: "probed", outcome: { kind: "ready" }, load: { running: 0 } };
const WORKER = { rank: 1, shardCount: 2 };

function after(shard: Shard, events: readonly ShardEvent[], now = 1_000): Shard {
  return events.reduce((each, event) => step(each, event, now).shard, shard);
}

function told(shard: Shard): string {
  const { state, reason } = statusOf(shard, { address: "10.0.0.1", load: {} }, 0);
  return `${state} ${reason}`.trim();
}

Deno.test("a shard whose links are bad is degraded, whatever its engine answers, until they are well", () => {
  const bad = after(aShard("ready"), [BAD]);
  equal(told(bad), "degraded nvlink_lost");
  equal(told(after(bad, [READY])), "degraded nvlink_lost");
  const healed = after(bad, [READY, WELL]);
  equal(wakeAt(healed), 1_000, "whether it serves is asked at once");
  equal(told(after(healed, [READY])), "ready");
});

Deno.test("another rank is degraded for its links too, and ready again without a probe", () => {
  const bad = after(aShard("ready", { spec: WORKER }), [BAD]);
  equal(told(bad), "degraded nvlink_lost");
  equal(wakeAt(bad), undefined, "it has nothing to be asked");
  equal(step(bad, { type: "tick" }, 5_000).effects.length, 0);
  equal(told(after(bad, [WELL])), "ready");
});

Deno.test("what its own answers say is told before its links, and its links after that", () => {
  const mute: ShardEvent = {
    type: "probed",
    outcome: { kind: "waiting", why: "no answer" },
    load: {},
  };
  const both = after(aShard("degraded"), [BAD]);
  equal(told(both), "degraded no_token");
  equal(told(after(both, [READY])), "degraded nvlink_lost");
  equal(told(after(both, [WELL, READY])), "ready");
  const reverse = after(aShard("ready"), [BAD, mute]);
  equal(told(reverse), "degraded not_answering");
  equal(told(after(reverse, [WELL])), "degraded not_answering");
  equal(told(after(reverse, [READY])), "degraded nvlink_lost");
});

Deno.test("an engine over bad links can still be found to hang", () => {
  let shard = after(aShard("ready"), [BAD]);
  const stuck: ShardEvent = {
    type: "probed",
    outcome: { kind: "ready" },
    load: { running: 3, waiting: 0, progress: 7 },
  };
  for (let now = 1_000; now < 3_600_000 && shard.state.kind === "degraded";) {
    now = Math.max(now + 1, wakeAt(shard) ?? Infinity);
    shard = step(step(shard, { type: "tick" }, now).shard, stuck, now).shard;
  }
  ok(shard.state.kind === "stopping" && shard.state.ending.kind === "failed");
  equal(shard.state.ending.failure.reason, "engine_hung");
});

Deno.test("a restarted agent finds a shard with bad links degraded, and does not kill it unheard", () => {
  const bad = after(aShard("ready"), [BAD]);
  let shard = after(bad, [{ type: "resumed", live: [PROCESS], adoptReadyMs: 60_000 }]);
  equal(shard.state.kind, "degraded");
  equal(told(after(shard, [READY])), "degraded nvlink_lost");
  for (let now = 2_000; now < 3_600_000; now += 10_000) {
    const outcome = { kind: "wrong", reason: "no_token", why: "no answer" } as const;
    shard = step(shard, { type: "tick" }, now).shard;
    shard = step(shard, { type: "probed", outcome, load: { running: 0 } }, now).shard;
  }
  equal(shard.state.kind, "degraded");
});

Deno.test("links mean nothing to a shard that loads, drains or has ended", () => {
  for (const kind of ["preparing", "loading", "draining", "stopping", "failed"] as const) {
    const shard = aShard(kind);
    deepEqual(after(shard, [BAD]).state, shard.state);
  }
});
