import { deepEqual, equal, match, ok } from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { LivenessSchema } from "@heddle/proto/gen/types";
import type { ProbeOutcome } from "@heddle/common/engine/probe_outcome";
import type { EngineLoad } from "./event.ts";
import { step, wakeAt } from "./lifecycle.ts";
import type { Shard } from "./shard.ts";
import { aShard, PROCESS } from "./shard_fake.ts";
import { HUNG_DEGRADED_MS, HUNG_FAILED_MS, PROBE_BUSY_MS, thresholdsOf } from "./timing.ts";

const READY: ProbeOutcome = { kind: "ready" };
const NO_TOKEN: ProbeOutcome = { kind: "wrong", reason: "no_token", why: "no answer within 60 s" };

/** Lets a shard run until `until`, each probe finding what `found` says; the effects of the end too. */
function live(
  shard: Shard,
  times: { readonly from: number; readonly until: number },
  found: (now: number) => { readonly outcome?: ProbeOutcome; readonly load: EngineLoad },
) {
  let now = times.from;
  let last: ReturnType<typeof step> = { shard, effects: [] };
  for (let count = 0; count < 1_000; count++) {
    const at = wakeAt(last.shard) ?? Infinity;
    if (at > times.until || last.shard.state.kind === "stopping") return { ...last, now };
    now = Math.max(now, at);
    const asked = step(last.shard, { type: "tick" }, now);
    equal(asked.effects[0]?.type, "probe");
    const { outcome = READY, load } = found(now);
    last = step(asked.shard, { type: "probed", outcome, load }, now);
  }
  throw new Error("it goes on for ever");
}

const hour = { from: 0, until: 3_600_000 };

Deno.test("requests that run while nothing is worked off: degraded, then failed", () => {
  const stuck = { load: { running: 2, waiting: 1, progress: 500 } };
  const early = live(
    aShard("ready"),
    { from: 0, until: 60_000 + HUNG_DEGRADED_MS - 1 },
    () => stuck,
  );
  equal(early.shard.state.kind, "ready");
  const soon = live(
    early.shard,
    { from: early.now, until: 60_000 + HUNG_DEGRADED_MS + PROBE_BUSY_MS },
    () => stuck,
  );
  ok(soon.shard.state.kind === "degraded");
  equal(soon.shard.state.reason, "engine_hung");
  const end = live(soon.shard, { ...hour, from: soon.now }, () => stuck);
  ok(end.shard.state.kind === "stopping" && end.shard.state.ending.kind === "failed");
  equal(end.shard.state.ending.failure.reason, "engine_hung");
  equal(end.shard.state.ending.failure.permanent, false);
  match(end.shard.state.ending.failure.message, /no token for 11m: /);
  equal(end.effects[0]?.type, "kill");
  ok(end.now >= 60_000 + HUNG_FAILED_MS && end.now < 60_000 + HUNG_FAILED_MS + 60_000);
});

Deno.test("a profile's own thresholds count, and what it does not say is the agent's", () => {
  const stuck = { load: { running: 1, waiting: 0, progress: 5 } };
  const patient = aShard("ready", {
    spec: {
      liveness: create(LivenessSchema, { hungAfterMs: 1_200_000, failAfterMs: 2_400_000 }),
    },
  });
  const quiet = live(patient, { from: 0, until: 60_000 + 1_200_000 - 1 }, () => stuck);
  equal(quiet.shard.state.kind, "ready");
  const end = live(quiet.shard, { ...hour, from: quiet.now }, () => stuck);
  ok(end.shard.state.kind === "stopping" && end.shard.state.ending.kind === "failed");
  match(end.shard.state.ending.failure.message, /no token for 40m: /);
  ok(end.now >= 60_000 + 2_400_000);
  deepEqual(thresholdsOf(patient.spec), { tokenMs: 60_000, hungMs: 1_200_000, failMs: 2_400_000 });
});

Deno.test("an engine whose queue stands still while nothing runs hangs as well", () => {
  const end = live(
    aShard("ready"),
    hour,
    () => ({ load: { running: 0, waiting: 4, progress: 9 } }),
  );
  equal(end.shard.state.kind, "stopping");
});

Deno.test("an engine that works off the least thing between two looks does not hang", () => {
  const slow = live(aShard("ready"), hour, (now) => ({
    load: { running: 1, waiting: 50, progress: Math.floor(now / 60_000) },
  }));
  equal(slow.shard.state.kind, "ready");
});

Deno.test("an engine that tells nothing is never called hung, however long", () => {
  for (
    const load of [{}, { running: 3 }, { progress: 3 }, { running: 0, waiting: 0, progress: 3 }]
  ) {
    equal(live(aShard("ready"), hour, () => ({ load })).shard.state.kind, "ready");
  }
});

Deno.test("an idle engine that gives no token is degraded, then failed", () => {
  const idle = { running: 0, waiting: 0, progress: 7 };
  const end = live(aShard("ready"), hour, () => ({ outcome: NO_TOKEN, load: idle }));
  ok(end.shard.state.kind === "stopping");
});

Deno.test("an engine that gives no token but whose load is unknown is only degraded", () => {
  const end = live(aShard("ready"), hour, () => ({ outcome: NO_TOKEN, load: {} }));
  ok(end.shard.state.kind === "degraded");
  equal(end.shard.state.hungSince, undefined);
});

Deno.test("the probe's own stuck request does not make an engine look well", () => {
  // The first probe found it idle and left a request behind, which now runs for ever.
  let asked = 0;
  const end = live(
    aShard("ready"),
    hour,
    () =>
      asked++ < 2
        ? { outcome: NO_TOKEN, load: { running: 0, waiting: 0, progress: 7 } }
        : { load: { running: 1, waiting: 0, progress: 7 } },
  );
  equal(end.shard.state.kind, "stopping");
});

Deno.test("an engine that goes on is ready again", () => {
  const stuck = live(
    aShard("ready"),
    { from: 0, until: 300_000 },
    () => ({ load: { running: 1, waiting: 0, progress: 7 } }),
  );
  equal(stuck.shard.state.kind, "degraded");
  const on = live(
    stuck.shard,
    { from: stuck.now, until: 320_000 },
    () => ({ load: { running: 1, waiting: 0, progress: 8 } }),
  );
  equal(on.shard.state.kind, "ready");
});

Deno.test("an engine that was adopted and never answered is reported, and not killed", () => {
  const adopted =
    step(aShard("ready"), { type: "resumed", live: [PROCESS], adoptReadyMs: 60_000 }, 0).shard;
  let shard = adopted;
  for (let now = 0; now <= 3_600_000; now += 10_000) {
    shard = step(shard, { type: "tick" }, now).shard;
    const load = { running: 0, waiting: 0, progress: 1 };
    shard = step(shard, { type: "probed", outcome: NO_TOKEN, load }, now).shard;
  }
  ok(shard.state.kind === "degraded");
  equal(shard.state.hungSince, undefined);
});
