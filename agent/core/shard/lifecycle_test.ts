import { deepEqual, equal, match, ok } from "node:assert/strict";
import type { ShardEvent } from "./event.ts";
import { begin, step, TRANSITIONS, wakeAt } from "./lifecycle.ts";
import type { Shard, StateKind } from "./shard.ts";
import { aShard, aSpec, PROCESS } from "./shard_fake.ts";
import { statusOf } from "./status.ts";
import {
  GPU_ANSWER_MS,
  GPU_RELEASE_MS,
  KILL_SETTLE_MS,
  PROBE_DEGRADED_MS,
  WORKER_GRACE_MS,
} from "./timing.ts";

const REVISION = { term: 1, sequence: 2 };
const SECOND = { ...PROCESS, name: "ray", handle: "h2", pid: 200 };

function stopEvent(graceMs = 0): ShardEvent {
  return { type: "stop", revision: REVISION, reason: "drained", graceMs };
}

function exited(handle = "h1"): ShardEvent {
  return {
    type: "exited",
    handle,
    exit: { code: 1, signal: "", outOfMemory: false },
    logTail: ["boom"],
  };
}

/** Feeds events one after the other; each is [event, time]. */
function run(shard: Shard, events: readonly (readonly [ShardEvent, number])[]) {
  return events.reduce(
    (before, [event, now]) => step(before.shard, event, now),
    { shard, effects: [] } as ReturnType<typeof step>,
  );
}

Deno.test("the diagram of the lifecycle says what the table says", async () => {
  const text = await Deno.readTextFile(new URL("./lifecycle.ts", import.meta.url));
  const drawn: Record<string, string[]> = Object.fromEntries(
    Object.keys(TRANSITIONS).map((kind) => [kind, []]),
  );
  for (const [, from = "", to = ""] of text.matchAll(/^ \* {3}(\w+) --> (\w+)$/gm)) {
    drawn[from]?.push(to);
  }
  deepEqual(drawn, TRANSITIONS);
  deepEqual(
    [...text.matchAll(/^ \* {3}(\w+) --> \[\*\]$/gm)].map(([, kind]) => kind),
    Object.entries(TRANSITIONS).filter(([, to]) => to.length === 0).map(([kind]) => kind),
  );
});

Deno.test("a leader goes from start to ready by way of its checks, its launch and its probe", () => {
  const begun = begin({ spec: aSpec(), revision: REVISION, apiKey: "k" }, 0);
  deepEqual(begun.effects, [{ type: "prepare" }]);
  const planned = [{ name: "server", handle: "h1" }];
  const launching = step(begun.shard, { type: "prepared", processes: planned }, 10);
  deepEqual(launching.effects, [{ type: "launch", processes: planned }]);
  const loading = step(launching.shard, { type: "launched", processes: [PROCESS] }, 20);
  equal(loading.shard.state.kind, "loading");
  const asked = step(loading.shard, { type: "tick" }, wakeAt(loading.shard) ?? 0);
  deepEqual(asked.effects, [{ type: "probe", token: "always" }]);
  const ready = step(
    asked.shard,
    { type: "probed", outcome: { kind: "ready", maxModelLen: 8192 } },
    900,
  );
  equal(ready.shard.state.kind, "ready");
  equal(ready.shard.since, 900);
});

Deno.test("a rank that serves no HTTP is ready once it has lived for the grace", () => {
  const worker = aShard("starting", { spec: { rank: 1, shardCount: 2 } });
  const loading = step(worker, { type: "launched", processes: [PROCESS] }, 0);
  equal(wakeAt(loading.shard), WORKER_GRACE_MS);
  const early = step(loading.shard, { type: "tick" }, WORKER_GRACE_MS - 1);
  equal(early.shard.state.kind, "loading");
  const ready = step(loading.shard, { type: "tick" }, WORKER_GRACE_MS);
  equal(ready.shard.state.kind, "ready");
  deepEqual(ready.effects, [], "nothing of it is probed");
  equal(wakeAt(ready.shard), undefined);
});

Deno.test("an engine that exits has failed, even with code 0, once nothing of it is left", () => {
  for (const kind of ["loading", "ready", "degraded"] as const) {
    const code0: ShardEvent = {
      type: "exited",
      handle: "h1",
      exit: { code: 0, signal: "", outOfMemory: false },
      logTail: ["bye"],
    };
    const ending = step(aShard(kind), code0, 50);
    equal(ending.shard.state.kind, "stopping", `${kind}: its workers may live`);
    deepEqual(ending.effects.map(({ type }) => type), ["kill", "count"]);
    const failed = step(ending.shard, { type: "counted", pids: [] }, 60);
    ok(failed.shard.state.kind === "failed");
    equal(failed.shard.state.failure.reason, "process_exited");
    match(failed.shard.state.failure.message, /exited with code 0/);
    deepEqual(failed.shard.state.failure.logTail, ["bye"]);
  }
});

Deno.test("if any process of a shard dies, all of them are ended", () => {
  const shard = aShard("ready", { state: { processes: [SECOND, PROCESS] } });
  const { effects } = step(shard, exited("h2"), 5);
  deepEqual(effects[0], { type: "kill", processes: [SECOND, PROCESS] });
});

Deno.test("the exit of a process that is not the shard's changes nothing", () => {
  const shard = aShard("ready");
  deepEqual(step(shard, exited("another"), 5), { shard, effects: [] });
});

Deno.test("a shard that is not ready in time is ended and says what was seen last", () => {
  const loading = aShard("loading");
  const { shard } = run(loading, [
    [{ type: "probed", outcome: { kind: "waiting", why: "nothing listens" } }, 1_000],
    [{ type: "tick" }, 100_000],
  ]);
  equal(shard.state.kind, "stopping");
  const failed = run(shard, [[exited(), 100_100], [{ type: "counted", pids: [] }, 100_200]]).shard;
  ok(failed.state.kind === "failed");
  equal(failed.state.failure.reason, "startup_timeout");
  match(failed.state.failure.message, /startup_timeout of 100 s; last seen: nothing listens/);
  deepEqual(failed.state.failure.logTail, ["boom"], "the engine's last words belong to it");
});

Deno.test("an engine that is told to stop and does not is killed after its stop_timeout", () => {
  const asked = step(aShard("ready"), stopEvent(), 0);
  deepEqual(asked.effects, [{ type: "terminate", processes: [PROCESS] }]);
  const early = step(asked.shard, { type: "tick" }, 9_999);
  ok(early.effects.every(({ type }) => type !== "kill"));
  const killed = step(early.shard, { type: "tick" }, 10_000);
  deepEqual(killed.effects.map(({ type }) => type), ["kill", "count"]);
  const stopped = run(killed.shard, [[{ type: "counted", pids: [] }, 10_050]]).shard;
  deepEqual(stopped.state, { kind: "stopped", reason: "drained" });
});

Deno.test("what survives SIGKILL keeps the shard stopping and is told with its pid", () => {
  const { shard } = run(aShard("ready"), [
    [stopEvent(), 0],
    [{ type: "tick" }, 10_000],
    [{ type: "counted", pids: [100, 101] }, 10_100],
  ]);
  ok(shard.state.kind === "stopping");
  deepEqual(shard.state.survivors, [], "the kernel may take a moment");
  const later = step(shard, { type: "counted", pids: [101] }, 10_000 + KILL_SETTLE_MS).shard;
  ok(later.state.kind === "stopping");
  deepEqual(later.state.survivors, [101]);
});

Deno.test("a stop with grace drains until the engine is idle, or the grace has passed", () => {
  const draining = step(aShard("ready"), stopEvent(30_000), 0).shard;
  equal(draining.state.kind, "draining");
  const measured = step(draining, { type: "tick" }, 0);
  deepEqual(measured.effects, [{ type: "measure" }]);
  const busy = step(measured.shard, { type: "measured", load: { running: 1, waiting: 0 } }, 10);
  equal(busy.shard.state.kind, "draining");
  const unknown = step(busy.shard, { type: "measured", load: {} }, 20);
  equal(unknown.shard.state.kind, "draining", "unknown is not idle");
  const idle = step(busy.shard, { type: "measured", load: { running: 0, waiting: 0 } }, 30);
  deepEqual(idle.effects, [{ type: "terminate", processes: [PROCESS] }]);
  const late = step(busy.shard, { type: "tick" }, 30_000);
  deepEqual(late.effects, [{ type: "terminate", processes: [PROCESS] }]);
});

Deno.test("an engine that ends while it drains has stopped, not failed", () => {
  const { shard } = run(aShard("draining"), [
    [exited(), 10],
    [{ type: "counted", pids: [] }, 20],
  ]);
  deepEqual(shard.state, { kind: "stopped", reason: "drained" });
});

Deno.test("a shard that is stopped while it is launched ends what was launched", () => {
  const stopping = step(aShard("starting"), stopEvent(), 0);
  equal(stopping.shard.state.kind, "stopping");
  const nothingYet = step(stopping.shard, { type: "counted", pids: [] }, 10);
  equal(nothingYet.shard.state.kind, "stopping", "the launch may still bring a process");
  const launched = step(nothingYet.shard, { type: "launched", processes: [PROCESS] }, 20);
  deepEqual(launched.effects, [{ type: "terminate", processes: [PROCESS] }]);
  const gone = run(launched.shard, [[exited(), 30], [{ type: "counted", pids: [] }, 40]]);
  equal(gone.shard.state.kind, "stopped");
});

Deno.test("a ready engine that stops answering is degraded after two probes, and never killed", () => {
  const waiting: ShardEvent = {
    type: "probed",
    outcome: { kind: "wrong", reason: "no_token", why: "no token" },
  };
  const once = step(aShard("ready"), waiting, 60_000);
  equal(once.shard.state.kind, "ready");
  const twice = step(once.shard, waiting, 70_000);
  ok(twice.shard.state.kind === "degraded");
  equal(twice.shard.state.reason, "no_token");
  const much = run(
    twice.shard,
    Array.from({ length: 50 }, (_, index) => [waiting, index * 10_000]),
  );
  equal(much.shard.state.kind, "degraded");
  equal(wakeAt(much.shard), 490_000 + PROBE_DEGRADED_MS);
  const back = step(much.shard, { type: "probed", outcome: { kind: "ready" } }, 500_000);
  equal(back.shard.state.kind, "ready");
});

Deno.test("a restarted agent keeps a loading shard under its first deadline", () => {
  const { shard, effects } = step(aShard("loading"), {
    type: "resumed",
    live: [PROCESS],
    adoptReadyMs: 60_000,
  }, 50_000);
  ok(shard.state.kind === "loading");
  equal(shard.state.deadline, 100_000);
  equal(wakeAt(shard), 300, "it is probed at once");
  deepEqual(effects, []);
});

Deno.test("an adopted shard stays ready, and is degraded when it does not answer in time", () => {
  const found = { type: "resumed", live: [PROCESS], adoptReadyMs: 20_000 } as const;
  const adopted = step(aShard("ready"), found, 1_000).shard;
  equal(adopted.state.kind, "ready");
  const silent = run(adopted, [
    [{ type: "tick" }, 1_000],
    [{ type: "probed", outcome: { kind: "waiting", why: "no answer" } }, 6_000],
    [{ type: "probed", outcome: { kind: "waiting", why: "no answer" } }, 12_000],
  ]).shard;
  equal(silent.state.kind, "ready", "it has its time");
  equal(step(silent, { type: "tick" }, 20_999).shard.state.kind, "ready");
  const late = step(silent, { type: "tick" }, 21_000);
  ok(late.shard.state.kind === "degraded");
  equal(late.shard.state.reason, "adopt_not_ready");
  deepEqual(late.effects, [], "reported, never killed");
});

Deno.test("a launch that an ending agent never began is begun again", () => {
  const again = step(aShard("starting"), { type: "resumed", live: [], adoptReadyMs: 60_000 }, 500);
  equal(again.shard.state.kind, "preparing");
  deepEqual(again.effects, [{ type: "prepare" }]);
  const whole = step(
    aShard("starting"),
    { type: "resumed", live: [PROCESS], adoptReadyMs: 60_000 },
    500,
  );
  equal(whole.shard.state.kind, "loading");
});

Deno.test("a half launched shard is ended by the agent that finds it", () => {
  const planned = [{ name: "ray", handle: "h2" }, { name: "server", handle: "h1" }];
  const { shard, effects } = step(
    aShard("starting", { state: { planned } }),
    { type: "resumed", live: [SECOND], adoptReadyMs: 60_000 },
    500,
  );
  equal(shard.state.kind, "stopping");
  deepEqual(effects[0], { type: "kill", processes: [SECOND] });
});

Deno.test("a stop of what has ended is taken note of and changes nothing else", () => {
  for (const kind of ["stopped", "failed"] as const satisfies readonly StateKind[]) {
    const { shard, effects } = step(aShard(kind), stopEvent(), 5);
    deepEqual(shard.revision, REVISION);
    equal(shard.state.kind, kind);
    deepEqual(effects, []);
  }
});

const GPUS = { spec: { gpus: [{ index: 0, uuid: "GPU-a" }] } };
const HELD = {
  uuid: "GPU-a",
  index: 0,
  usedMib: 70_000,
  totalMib: 81_559,
  holders: [{ pid: 77, name: "python" }],
};

Deno.test("a shard with GPUs has ended only once their memory is free", () => {
  const counted = step(aShard("stopping", GPUS), { type: "counted", pids: [] }, 5);
  equal(counted.shard.state.kind, "stopping");
  deepEqual(counted.effects, [{ type: "check_gpus" }]);
  const held = step(counted.shard, { type: "gpus_checked", unreleased: [HELD] }, 10);
  equal(held.shard.state.kind, "stopping");
  const again = step(held.shard, { type: "tick" }, wakeAt(held.shard) ?? 0);
  deepEqual(
    again.effects,
    [{ type: "check_gpus" }],
    "it is looked at again, and nothing is killed",
  );
  const free = step(again.shard, { type: "gpus_checked", unreleased: [] }, 2_000);
  deepEqual(free.shard.state, { kind: "stopped", reason: "drained" });
});

Deno.test("a GPU whose memory stays in use is waited for only so long, and told with its holder", () => {
  const counted = step(aShard("stopping", GPUS), { type: "counted", pids: [] }, 0);
  const late = step(counted.shard, { type: "gpus_checked", unreleased: [HELD] }, GPU_RELEASE_MS);
  ok(late.shard.state.kind === "stopped");
  match(late.shard.state.message ?? "", /GPU 0 now has 70000 of 81559 MiB in use, held by pid 77/);
  const status = statusOf(late.shard, { address: "10.0.0.1", load: {} }, GPU_RELEASE_MS);
  equal(status.message, late.shard.state.message);
  const failure = { reason: "process_exited", message: "gone", permanent: false, logTail: [] };
  const failing = step(
    aShard("stopping", { ...GPUS, state: { ending: { kind: "failed", failure } } }),
    { type: "counted", pids: [] },
    0,
  );
  const failed = step(failing.shard, { type: "gpus_checked", unreleased: [HELD] }, GPU_RELEASE_MS);
  ok(failed.shard.state.kind === "failed");
  match(failed.shard.state.failure.message, /^gone\. GPU 0 now has/);
});

Deno.test("a GPU of which nothing is known is not busy for ever", () => {
  const counted = step(aShard("stopping", GPUS), { type: "counted", pids: [] }, 0);
  const unknown = step(counted.shard, { type: "gpus_checked" }, 10);
  equal(unknown.shard.state.kind, "stopped");
  let silent = counted.shard;
  for (let now = 0; now <= GPU_RELEASE_MS + GPU_ANSWER_MS; now += 1_000) {
    silent = step(silent, { type: "tick" }, now).shard;
  }
  equal(silent.state.kind, "stopped", "no answer at all ends the wait too");
});

Deno.test("what survives SIGKILL is told in the words of its launcher", () => {
  const killed = run(aShard("ready"), [[stopEvent(), 0], [{ type: "tick" }, 10_000]]).shard;
  const words = ["pid 101 (python3, uninterruptible: it waits for a driver or a disk)"];
  const told = step(killed, { type: "counted", pids: [101], words }, 10_000 + KILL_SETTLE_MS).shard;
  match(
    statusOf(told, { address: "", load: {} }, 0).message,
    /Still alive after SIGKILL: pid 101 \(python3, uninterruptible/,
  );
});
