import { deepEqual, equal, match } from "node:assert/strict";
import type { EpochMs } from "../ids.ts";
import { observe } from "../observing/observe.ts";
import { modelOf, T0, world } from "../testing/builders.ts";
import type { Replica, World } from "../world.ts";
import { desired } from "./desired.ts";
import { scaleStep } from "./scaling.ts";

const MODEL = modelOf({ name: "m", scaling: { min: 1, max: 8, target: 10 } });

interface Said {
  readonly requests: number;
  readonly answered?: number;
  readonly missed?: number;
}

/** Reports of one router every 2 s. */
function reports(
  so: World,
  { from, ms, router = "r/1" }: {
    readonly from: EpochMs;
    readonly ms: number;
    readonly router?: string;
  },
  said: (at: EpochMs) => Said,
): World {
  let next = so;
  for (let at = from; at <= from + ms; at += 2_000) {
    const { requests, answered = 0, missed = 0 } = said(at);
    const load = { waiting: requests, requests: answered, failures: 0, sloMisses: missed };
    next = observe(next, {
      kind: "router_report",
      router,
      version: "0.1.0",
      instance: "1",
      applied: { term: 1, sequence: 0 },
      replicas: new Map(),
      models: new Map([["m", load]]),
    }, at);
  }
  return next;
}

function scaledTo(count: number): World {
  const so = world([MODEL]);
  const record = { failedStarts: 0, blocked: [], scaled: { count, reason: "", at: T0 } };
  return { ...so, models: new Map([["m", record]]) };
}

const later = (ms: number) => T0 + 130_000 + ms;
const step = (so: World, now: EpochMs, ready = 8) =>
  scaleStep(so, MODEL, { live: ready, ready, found: 0 }, now);

Deno.test("scaleStep() begins with what runs, within the model's bounds", () => {
  equal(step(world([MODEL]), T0, 3)?.count, 3);
  equal(step(world([MODEL]), T0, 0)?.count, 1);
  equal(step(world([MODEL]), T0, 20)?.count, 8);
});

Deno.test("scaleStep() does not take for surplus what nodes are found to run one by one", () => {
  const so = scaledTo(1);
  const found = {
    ...so,
    models: new Map([["m", {
      failedStarts: 0,
      blocked: [],
      scaled: { count: 1, reason: "as many as were found running", at: T0 },
    }]]),
  };
  const fleet = { live: 4, ready: 4, found: 3 };
  equal(scaleStep(found, MODEL, fleet, T0 + 30_000)?.count, 3);
  equal(scaleStep(found, MODEL, fleet, later(0)), undefined);
  equal(scaleStep(so, MODEL, fleet, T0 + 30_000), undefined);
});

Deno.test("scaleStep() adds replicas once demand has called for them for a whole window", () => {
  const early = reports(scaledTo(1), { from: later(0), ms: 20_000 }, () => ({ requests: 35 }));
  equal(step(early, later(20_000)), undefined);
  const due = reports(scaledTo(1), { from: later(0), ms: 34_000 }, () => ({ requests: 35 }));
  deepEqual(step(due, later(34_000)), {
    model: "m",
    count: 4,
    reason: "35 requests or more for 30s, 10 for each replica",
  });
});

Deno.test("scaleStep() adds nothing for a demand that paused within the window", () => {
  const so = reports(scaledTo(1), { from: later(0), ms: 40_000 }, (at) => ({
    requests: at === later(20_000) ? 0 : 35,
  }));
  equal(step(so, later(40_000)), undefined);
});

Deno.test("scaleStep() takes replicas away only after a whole quiet window", () => {
  const so = reports(scaledTo(4), { from: later(0), ms: 50_000 }, () => ({ requests: 7 }));
  equal(step(so, later(50_000)), undefined);
  const due = reports(so, { from: later(52_000), ms: 14_000 }, () => ({ requests: 7 }));
  const down = step(due, later(66_000));
  equal(down?.count, 1);
  match(down?.reason ?? "", /^at most 7 requests for 1m/);
});

Deno.test("scaleStep() takes nothing away for one busy moment, nor near the edge of a step", () => {
  const busy = reports(scaledTo(4), { from: later(0), ms: 70_000 }, (at) => ({
    requests: at === later(40_000) ? 38 : 0,
  }));
  equal(step(busy, later(70_000)), undefined);
  const edge = reports(scaledTo(2), { from: later(0), ms: 70_000 }, () => ({ requests: 9 }));
  equal(step(edge, later(70_000)), undefined);
});

Deno.test("scaleStep() takes nothing away where reports are missing", () => {
  const gap = reports(scaledTo(4), { from: later(0), ms: 20_000 }, () => ({ requests: 0 }));
  const after = reports(gap, { from: later(60_000), ms: 20_000 }, () => ({ requests: 0 }));
  equal(step(after, later(80_000)), undefined);
  // No reports at all: nothing is known.
  const quiet = reports(scaledTo(4), { from: later(0), ms: 70_000 }, () => ({ requests: 0 }));
  equal(step(quiet, later(70_000))?.count, 0 + 1);
  equal(step(quiet, later(100_000)), undefined);
  // One of two routers fell silent.
  const two = reports(
    scaledTo(4),
    { from: later(0), ms: 0, router: "r/2" },
    () => ({ requests: 0 }),
  );
  const one = reports(two, { from: later(0), ms: 66_000 }, () => ({ requests: 0 }));
  equal(step(one, later(66_000)), undefined);
});

Deno.test("scaleStep() takes nothing away before a whole window has passed since settling", () => {
  const so = reports(scaledTo(4), { from: T0, ms: 100_000 }, () => ({ requests: 0 }));
  equal(step(so, T0 + 100_000), undefined);
});

Deno.test("scaleStep() adds one replica for a missed slo, and waits for its effect", () => {
  const slow = () => ({ requests: 5, answered: 20, missed: 1 });
  const so = reports(scaledTo(2), { from: later(0), ms: 34_000 }, slow);
  const up = step(so, later(34_000), 2);
  equal(up?.count, 3);
  match(up?.reason ?? "", /requests missed the slo in 30s$/);
  // It is not ready yet, or was added within the window.
  equal(step(so, later(34_000), 1), undefined);
  const just = {
    failedStarts: 0,
    blocked: [],
    scaled: { count: 2, reason: "", at: later(20_000) },
  };
  const demand = so.models.get("m")?.demand ?? [];
  equal(
    step({ ...so, models: new Map([["m", { ...just, demand }]]) }, later(34_000), 2),
    undefined,
  );
});

Deno.test("scaleStep() counts what engines have when routers say less", () => {
  const engine = {
    state: "ready" as const,
    revision: { term: 1, sequence: 1 },
    attempt: 1,
    reason: "",
    message: "",
    permanent: false,
    address: "10.0.0.1:20000",
    apiKey: "",
    logTail: [],
    since: T0,
    progress: "",
  };
  const withEngine = (so: World, at: EpochMs): World => {
    const shard = {
      id: "m-1-1-0",
      node: "n1",
      rank: 0,
      status: { ...engine, load: { running: 40, waiting: 5, at } },
    };
    return {
      ...so,
      replicas: new Map([["m-1-1", { ...REPLICA, shards: [{ ...SHARD, ...shard }] }]]),
    };
  };
  let so = scaledTo(1);
  for (let ms = 0; ms <= 34_000; ms += 2_000) {
    so = reports(withEngine(so, later(ms)), { from: later(ms), ms: 0 }, () => ({ requests: 0 }));
  }
  equal(step(so, later(34_000))?.count, 5);
});

Deno.test("desired() holds what an operator gave, whatever the demand", () => {
  const so = observe(scaledTo(4), {
    kind: "scale",
    model: "m",
    replicas: 2,
    by: "ops",
    reason: "",
  }, T0);
  equal(step(so, later(0)), undefined);
  deepEqual(desired(so, MODEL, 4, T0), { count: 2, reason: "override" });
  const cleared = observe(so, { kind: "clear_scale", model: "m", by: "ops" }, T0);
  equal(step(cleared, T0, 2)?.count, 2);
});

Deno.test("desired() lets a model sleep, wakes it, scales it, and puts it back", () => {
  const model = modelOf({ name: "m", scaling: { min: 0, max: 4, target: 10 } });
  const asleep = world([model]);
  deepEqual(desired(asleep, model, 0, T0), { count: 0, reason: "asleep" });
  const awake = observe(asleep, { kind: "wake", model: "m" }, T0);
  equal(desired(awake, model, 0, T0).count, 1);
  const record = awake.models.get("m") ?? { failedStarts: 0, blocked: [] };
  const busy = { ...record, scaled: { count: 3, reason: "", at: T0 } };
  const scaled = { ...awake, models: new Map([["m", busy]]) };
  deepEqual(
    desired(scaled, model, 3, T0),
    { count: 3, reason: "demand", until: T0 + awake.timings.idleMs },
  );
  // Nobody reports: that it is idle is not known.
  const idle = T0 + awake.timings.idleMs;
  deepEqual(desired(scaled, model, 3, idle), { count: 3, reason: "reports_missing" });
  const heard = reports(scaled, { from: idle, ms: 0 }, () => ({ requests: 0 }));
  deepEqual(desired(heard, model, 3, idle), { count: 0, reason: "asleep" });
});

const SHARD: Replica["shards"][number] = {
  id: "m-1-1-0",
  node: "n1",
  rank: 0,
  spec: {
    shardId: "m-1-1-0",
    replicaId: "m-1-1",
    rank: 0,
    shardCount: 1,
    attempt: 1,
    model: "m",
    profile: "h100",
    fingerprint: "",
    engine: "vllm",
    engineVersion: "",
    source: "org/weights",
    tp: 1,
    pp: 1,
    dp: 1,
    gpus: [],
    fabric: "",
    hcas: [],
    portFirst: 20_000,
    portCount: 256,
    leaderAddress: "",
    leaderPort: 0,
    args: [],
    env: {},
    launchMode: "mp",
    startupTimeoutMs: 0,
    stopTimeoutMs: 0,
    unsafeEnv: false,
    memoryBytes: 0n,
  },
};

const REPLICA: Replica = {
  id: "m-1-1",
  model: "m",
  profile: "h100",
  fingerprint: "",
  shardCount: 1,
  shards: [SHARD],
  createdAt: T0,
  readyDeadline: T0 + 60_000,
  readyAt: T0,
  adopted: false,
  scores: {},
  notes: [],
};
