import { deepEqual, equal, ok } from "node:assert/strict";
import { join } from "node:path";
import { EndpointRemovalReason } from "@heddle/proto/gen/router";
import {
  type FakeControl,
  startFakeControl,
  type WatchMessage,
} from "./edge/control/control_fake.ts";
import { CHAT, type RunningRouter, runRouter } from "./testing/running_router.ts";
import {
  HEALTHY,
  openStream,
  type ScriptedEngine,
  startEngine,
} from "./testing/scripted_engine.ts";

interface Setup extends AsyncDisposable {
  readonly control: FakeControl;
  readonly engine: ScriptedEngine;
  readonly directory: string;
  router(over?: Record<string, unknown>): Promise<RunningRouter>;
}

async function setup(): Promise<Setup> {
  const control = await startFakeControl();
  const engine = await startEngine(HEALTHY);
  const directory = await Deno.makeTempDir();
  return {
    control,
    engine,
    directory,
    router: (over = {}) =>
      runRouter({
        name: "host/1",
        state_directory: directory,
        control: { urls: [control.url] },
        report_interval: "100ms",
        ...over,
      }),
    async [Symbol.asyncDispose]() {
      await control.close();
      await engine[Symbol.asyncDispose]();
      await Deno.remove(directory, { recursive: true });
    },
  };
}

function snapshot(engine: ScriptedEngine, over: WatchMessage = {}): WatchMessage {
  return {
    revision: { term: 1n, sequence: 1n },
    snapshot: true,
    snapshotEnd: true,
    settled: true,
    models: [{ name: "m", aliases: ["nick"] }],
    endpoints: [{
      replicaId: "r-1",
      model: "m",
      address: `127.0.0.1:${engine.port}`,
      node: "n1",
      servedName: "served",
      apiKey: "sk-heddle-replica-key-1",
      weight: 1,
    }],
    ...over,
  };
}

/** Waits until a request for the model ends as wanted; the table changes at its own pace. */
async function until(router: RunningRouter, status: number, model = "m"): Promise<Response> {
  for (let tries = 0; tries < 5_000; tries++) {
    const response = await router.post("/v1/chat/completions", { ...CHAT, model });
    if (response.status === status) return response;
    await response.body?.cancel();
  }
  throw new Error(`No answer with status ${status}`);
}

Deno.test("a router serves what control says, with the replica's key, and says what is not there", async () => {
  await using s = await setup();
  await using router = await s.router();
  equal(router.notReady(), "has not heard from control yet");
  const early = await router.post("/v1/chat/completions", CHAT);
  deepEqual([early.status, (await early.json()).error.code], [503, "not_ready"]);
  s.control.say(snapshot(s.engine));
  const response = await until(router, 200, "nick");
  equal(response.headers.get("x-heddle-replica"), "r-1");
  await response.body?.cancel();
  equal(s.engine.calls[0]?.headers.authorization, "Bearer sk-heddle-replica-key-1");
  equal(router.notReady(), undefined);
  equal(await router.metric("heddle_router_watch_connected"), 1);
  deepEqual(s.control.watchers.map(({ router }) => router), ["host/1"]);
  s.control.say({
    revision: { term: 1n, sequence: 2n },
    removedEndpoints: [{ replicaId: "r-1", reason: EndpointRemovalReason.STOPPED }],
    models: [{ name: "m", reason: "no node has 8 free GPUs" }],
  });
  const gone = await until(router, 503);
  ok(Number(gone.headers.get("retry-after")) >= 1);
  const { error } = await gone.json();
  equal(error.code, "model_unavailable");
  ok(error.message.includes("no node has 8 free GPUs"));
});

Deno.test("a router that restarts while control is away serves from its last snapshot", async () => {
  await using s = await setup();
  s.control.say(snapshot(s.engine));
  {
    await using router = await s.router();
    await (await until(router, 200)).body?.cancel();
  }
  await s.control.close();
  const info = await Deno.stat(join(s.directory, "snapshot.json"));
  equal((info.mode ?? 0) & 0o777, 0o600);
  await using router = await s.router({ snapshot_age_warning: "0s" });
  equal(router.notReady(), undefined);
  const response = await router.post("/v1/chat/completions", CHAT);
  equal(response.status, 200);
  await response.body?.cancel();
  const age = await router.metric("heddle_router_snapshot_age_seconds");
  ok(age !== undefined && age > 0 && age < 60);
  equal(await router.metric("heddle_router_snapshot_too_old"), 1);
  equal(await router.metric("heddle_router_watch_connected"), 0);
});

Deno.test("a model's band and capacity come from the catalog, unless router.yaml has its own", async () => {
  await using s = await setup();
  s.control.say(snapshot(s.engine, {
    models: [{ name: "m", aliases: ["nick"], band: "bronze", capacity: 7 }],
  }));
  const capacity = 'heddle_router_replica_capacity{replica="r-1"}';
  {
    await using router = await s.router();
    await (await until(router, 200)).body?.cancel();
    deepEqual([router.records.at(-1)?.band, await router.metric(capacity)], ["bronze", 7]);
  }
  await s.control.close();
  // And from the snapshot, with control away.
  await using router = await s.router({
    admission: { models: [{ name: "m", band: "gold", capacity: 3 }] },
  });
  await (await until(router, 200)).body?.cancel();
  deepEqual([router.records.at(-1)?.band, await router.metric(capacity)], ["gold", 3]);
  const plain = await s.router();
  await (await until(plain, 200)).body?.cancel();
  deepEqual([plain.records.at(-1)?.band, await plain.metric(capacity)], ["bronze", 7]);
  await plain[Symbol.asyncDispose]();
});

Deno.test("a snapshot file that cannot be used is left alone, and said", async () => {
  await using s = await setup();
  await s.control.close();
  for (const text of ["{", '{"version":99,"confirmed_at_ms":1,"watch":{"later":true}}']) {
    await Deno.writeTextFile(join(s.directory, "snapshot.json"), text);
    await using router = await s.router();
    equal(router.notReady(), "has not heard from control yet");
    equal(await Deno.readTextFile(join(s.directory, "snapshot.json")), text);
  }
});

Deno.test("a router reports its revision and what it has in flight", async () => {
  await using s = await setup();
  s.engine.script((call) => openStream(call));
  s.control.say(snapshot(s.engine, { revision: { term: 3n, sequence: 7n } }));
  await using router = await s.router();
  const leave = new AbortController();
  const request = (async () => {
    for (;;) {
      const response = await router.post("/v1/chat/completions", { ...CHAT, stream: true }, {
        signal: leave.signal,
      });
      if (response.status === 200) return;
      await response.body?.cancel();
    }
  })();
  await s.engine.called(1);
  let report = await s.control.nextReport();
  while (report.replicas.length === 0) report = await s.control.nextReport();
  deepEqual(report.replicas.map(({ replicaId, inFlight }) => [replicaId, inFlight]), [["r-1", 1]]);
  equal(report.applied?.term, 3n);
  equal(report.applied?.sequence, 7n);
  leave.abort();
  await request.catch(() => {});
  await s.engine.calls[0]?.aborted;
  while (report.replicas.length > 0) report = await s.control.nextReport();
});

Deno.test("a router reports how many requests missed what is promised of their model", async () => {
  await using s = await setup();
  const reported = Promise.withResolvers<void>();
  s.engine.script(async (call) => {
    // Several reports later than the 1 ms that is promised.
    await reported.promise;
    await HEALTHY(call, 0);
  });
  const models = [{ name: "m", aliases: [], sloTtftMs: 1 }, { name: "free", aliases: [] }];
  s.control.say(snapshot(s.engine, { models }));
  await using router = await s.router();
  const ask = () => router.post("/v1/chat/completions", { ...CHAT, stream: true });
  let answer = ask();
  for (let early = await Promise.race([answer, s.engine.called(1)]); early !== undefined;) {
    await early.body?.cancel();
    answer = ask();
    early = await Promise.race([answer, s.engine.called(1)]);
  }
  await s.control.nextReport();
  await s.control.nextReport();
  reported.resolve();
  await (await answer).text();
  let load = (await s.control.nextReport()).models.find(({ model }) => model === "m");
  while (load === undefined || load.requests === 0) {
    load = (await s.control.nextReport()).models.find(({ model }) => model === "m");
  }
  deepEqual([load.requests, load.failures, load.sloMisses], [1, 0, 1]);
  const times = load.firstContent?.counts ?? [];
  equal(times.reduce((sum, count) => sum + count, 0), 1, "the stream's first content");
  ok(times.length > 1, "later than 1 ms");
  equal(load.queued?.gold, 0);
});

Deno.test("a request for a sleeping model wakes it and is served once it is there", async () => {
  await using s = await setup();
  s.control.say(snapshot(s.engine, { models: [{ name: "m", wakeable: true }], endpoints: [] }));
  await using router = await s.router();
  await until(router, 404, "other").then((response) => response.body?.cancel());
  const pending = router.post("/v1/chat/completions", CHAT);
  while ((await router.metric('heddle_router_requests_waiting{model="m"}')) !== 1) {
    await router.tick();
  }
  const report = await s.control.nextReport();
  equal(report.models.find(({ model }) => model === "m")?.waiting, 1);
  deepEqual(s.control.wakes, ["m"]);
  s.control.say({ ...snapshot(s.engine), snapshot: false, revision: { term: 1n, sequence: 2n } });
  const response = await pending;
  equal(response.status, 200);
  await response.body?.cancel();
  equal(await router.metric('heddle_router_requests_waiting{model="m"}'), undefined);
});

Deno.test("a held request ends after the hold with a 503 and a Retry-After", async () => {
  await using s = await setup();
  s.control.say(snapshot(s.engine, {
    models: [{ name: "m", wakeable: true, reason: "loading weights" }],
    endpoints: [],
  }));
  await using router = await s.router({ timeouts: { hold: "50ms" } });
  await (await until(router, 404, "other")).body?.cancel();
  const response = await router.post("/v1/chat/completions", CHAT);
  const { error } = await response.json();
  ok(error.message.includes("loading weights"));
  equal(response.headers.get("retry-after"), "30");
});

Deno.test("a router follows the next control of its list, and not one that is behind", async () => {
  await using s = await setup();
  const behind = await startFakeControl();
  try {
    behind.say(snapshot(s.engine, { revision: { term: 1n, sequence: 5n }, endpoints: [] }));
    s.control.say(snapshot(s.engine, { revision: { term: 2n, sequence: 1n } }));
    await using router = await s.router({ control: { urls: [s.control.url, behind.url] } });
    await (await until(router, 200)).body?.cancel();
    await s.control.close();
    while (behind.watchers.length === 0) await router.tick();
    const response = await router.post("/v1/chat/completions", CHAT);
    equal(response.status, 200);
    await response.body?.cancel();
  } finally {
    await behind.close();
  }
});

Deno.test("a router tries the next control at once when one is gone and one stands by", async () => {
  await using s = await setup();
  const standby = await startFakeControl(0, true);
  const gone = await startFakeControl();
  await gone.close();
  try {
    s.control.say(snapshot(s.engine));
    const begunAt = performance.now();
    await using router = await s.router({
      control: { urls: [gone.url, standby.url, s.control.url] },
    });
    await (await until(router, 200)).body?.cancel();
    const tookMs = performance.now() - begunAt;
    ok(tookMs < 3_000, `without a wait: ${tookMs} ms`);
    equal(standby.watchers.length, 1);
  } finally {
    await standby.close();
  }
});
