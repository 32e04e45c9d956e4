import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { HeddleError } from "@heddle/proto/error";
import type { Event } from "./core/event.ts";
import type { ShardCommand } from "./core/plan.ts";
import type { Published } from "./core/published.ts";
import type { StoreRecord } from "./core/store_record.ts";
import { modelOf, registered, T0, world } from "./core/testing/builders.ts";
import type { World } from "./core/world.ts";
import { createLoop, type Effects, type Pass } from "./loop.ts";

/** What a loop does, and what a test breaks of it. */
function fakeEffects() {
  const sent: ShardCommand[] = [];
  const published: Published[] = [];
  const stored: StoreRecord[] = [];
  const remembered: StoreRecord[] = [];
  const broken = {
    send: false,
    publish: false,
    persist: false,
    remember: false,
    slow: false,
    leads: true,
  };
  /** Writes that a slow store has not answered yet. */
  const writes: PromiseWithResolvers<void>[] = [];
  const refuse = (broke: boolean) => {
    if (broke) throw new HeddleError("unavailable", "it is away");
  };
  const write = async (broke: boolean, into: StoreRecord[], records: readonly StoreRecord[]) => {
    refuse(broke);
    if (broken.slow) {
      const written = Promise.withResolvers<void>();
      writes.push(written);
      await written.promise;
    }
    into.push(...records);
  };
  const effects: Effects = {
    sendCommand(_node, command) {
      refuse(broken.send);
      sent.push(command);
    },
    publish(each) {
      refuse(broken.publish);
      published.push(each);
    },
    persist: (records) => write(broken.persist, stored, records),
    remember: (records) => write(broken.remember, remembered, records),
    leads: () => broken.leads,
  };
  return { effects, sent, published, stored, remembered, broken, writes };
}

/** A loop on a clock that only the test moves. */
function setUp(start: World = world([modelOf({ name: "m" })])) {
  let now = T0;
  const timers: { at: number; wake: () => void }[] = [];
  const passes: Pass[] = [];
  const failures: string[] = [];
  const { effects, ...seen } = fakeEffects();
  const loop = createLoop({
    world: start,
    clock: {
      now: () => now,
      setTimer(ms, wake) {
        const timer = { at: now + ms, wake };
        timers.push(timer);
        return () => timers.splice(timers.indexOf(timer), timers.includes(timer) ? 1 : 0);
      },
    },
    effects,
    hooks: {
      passed: (pass) => void passes.push(pass),
      failed: (what) => void failures.push(what),
    },
  });
  const advance = (ms: number) => {
    for (const end = now + ms;;) {
      const [next] = timers.toSorted((a, b) => a.at - b.at);
      if (next === undefined || next.at > end) {
        now = end;
        return;
      }
      now = Math.max(now, next.at);
      timers.splice(timers.indexOf(next), 1);
      next.wake();
    }
  };
  return { loop, advance, passes, failures, timers, ...seen };
}

const heartbeat = (node: string): Event => ({
  kind: "heartbeat",
  node,
  heartbeat: {
    gpus: [],
    hcas: [],
    fabrics: [],
    hardwarePresent: false,
    modelDirs: [],
    modelFiles: [],
    modelFilesPresent: false,
    engines: [],
    enginesPresent: false,
    problems: [],
    loads: [],
  },
});

Deno.test("createLoop() makes a first pass and publishes", () => {
  const { advance, published, passes } = setUp();
  advance(0);
  equal(passes.length, 1);
  deepEqual([...published.at(-1)?.models.keys() ?? []], ["m"]);
});

Deno.test("dispatch() gathers what many nodes say into one pass per 250 ms", async () => {
  const { loop, advance, passes } = setUp();
  advance(0);
  for (let node = 1; node <= 20; node++) await loop.dispatch(registered(`n${node}`));
  equal(passes.length, 1);
  advance(249);
  equal(passes.length, 1);
  advance(1);
  equal(passes.length, 2);
});

Deno.test("dispatch() makes a pass at once for an operator, and stores what was decided, by whom", async () => {
  const { loop, advance, passes, stored } = setUp();
  await loop.dispatch(registered("n1"));
  advance(1_000);
  const before = passes.length;
  await loop.dispatch({ kind: "cordon", node: "n1", by: "ops", reason: "fan" });
  advance(0);
  equal(passes.length, before + 1);
  const at = T0 + 1_000;
  deepEqual(stored.slice(-2), [
    {
      kind: "node_decision",
      node: "n1",
      decision: { kind: "cordon", by: "ops", reason: "fan", at },
    },
    { kind: "audit", at, by: "ops", action: "cordon", subject: "n1", reason: "fan" },
  ]);
});

Deno.test("dispatch() changes nothing and throws when the store refuses", async () => {
  const { loop, advance, broken } = setUp();
  await loop.dispatch(registered("n1"));
  advance(1_000);
  broken.persist = true;
  await rejects(loop.dispatch({ kind: "cordon", node: "n1", by: "ops", reason: "" }), /away/);
  equal(loop.world().decisions.nodes.size, 0);
});

Deno.test("the loop records a command before it is sent, and sends it again without an answer", async () => {
  const { loop, advance, sent, failures, broken, stored } = setUp();
  broken.send = true;
  await loop.dispatch(registered("n1"));
  advance(1_000);
  ok(stored.some((record) => record.kind === "known_node"));
  const shard = [...loop.world().replicas.values()][0]?.shards[0];
  equal(shard?.command?.kind, "start");
  deepEqual(failures, ["Cannot send start_shard for m-1-1-0 to n1"]);
  broken.send = false;
  await loop.dispatch(heartbeat("n1"));
  advance(10_000);
  deepEqual(sent.map((command) => command.revision), [shard?.command?.revision]);
});

Deno.test("the loop goes on when one action fails", async () => {
  const { loop, advance, sent, failures, broken } = setUp();
  broken.publish = true;
  await loop.dispatch(registered("n1"));
  advance(1_000);
  ok(failures.includes("Cannot publish"));
  equal(sent.length, 1);
});

Deno.test("heartbeats that change nothing make no pass, and keep their node reachable", async () => {
  const { loop, advance, passes } = setUp(world());
  await loop.dispatch(registered("n1"));
  advance(1_000);
  const before = passes.length;
  for (let second = 0; second < 60; second += 5) {
    await loop.dispatch(heartbeat("n1"));
    advance(5_000);
  }
  ok(passes.length - before <= 6, `${passes.length - before} passes in a minute of heartbeats`);
  equal(loop.world().nodes.get("n1")?.lastSeenAt, T0 + 56_000);
});

Deno.test("the loop wakes by itself when a node falls silent", async () => {
  const { loop, advance, passes } = setUp();
  await loop.dispatch(registered("n1"));
  advance(16_000);
  const plan = passes.at(-1)?.plan;
  ok(plan !== undefined && passes.length > 2);
  advance(60_000);
  ok([...loop.world().published.removed.values()].every((reason) => reason === "lost"));
});

Deno.test("stop() ends every timer, executes nothing afterwards, and refuses what it cannot store", async () => {
  const { loop, advance, timers, passes } = setUp();
  advance(0);
  await loop.dispatch(registered("n1"));
  loop.stop();
  const before = passes.length;
  await loop.dispatch(heartbeat("n1"));
  await rejects(loop.dispatch(registered("n2")), /does not lead any more/);
  await rejects(loop.dispatch({ kind: "cordon", node: "n1", by: "ops", reason: "" }), /not lead/);
  advance(60_000);
  deepEqual([timers.length, passes.length, loop.world().nodes.size], [0, before, 1]);
});

Deno.test("a decision takes effect when the store has answered, and what comes after it waits", async () => {
  const { loop, advance, broken, writes, passes } = setUp();
  await loop.dispatch(registered("n1"));
  advance(1_000);
  broken.slow = true;
  const order: string[] = [];
  const cordon = loop.dispatch({ kind: "cordon", node: "n1", by: "ops", reason: "fan" })
    .then(() => order.push("cordon"));
  const closed = loop.dispatch({ kind: "stream_closed", node: "n1" })
    .then(() => order.push("closed"));
  const again = loop.dispatch({ kind: "drain", node: "n1", by: "ops", reason: "fan" })
    .then(() => order.push("drain"));
  const made = passes.length;
  advance(10_000);
  ok(passes.length > made, "passes go on meanwhile");
  deepEqual([loop.world().decisions.nodes.size, loop.world().nodes.get("n1")?.connected], [
    0,
    true,
  ]);
  writes.shift()?.resolve();
  await cordon;
  await closed;
  equal(loop.world().decisions.nodes.get("n1")?.kind, "cordon");
  equal(loop.world().nodes.get("n1")?.connected, false);
  deepEqual(order, ["cordon", "closed"]);
  while (writes.length === 0) await Promise.resolve();
  writes.shift()?.resolve();
  await again;
  equal(loop.world().decisions.nodes.get("n1")?.kind, "drain");
});

Deno.test("a heartbeat that changes nothing does not wait for the store", async () => {
  const { loop, advance, broken, writes } = setUp();
  await loop.dispatch(registered("n1"));
  broken.slow = true;
  const cordon = loop.dispatch({ kind: "cordon", node: "n1", by: "ops", reason: "" });
  advance(5_000);
  await loop.dispatch(heartbeat("n1"));
  equal(loop.world().nodes.get("n1")?.lastSeenAt, T0 + 5_000);
  writes.shift()?.resolve();
  await cordon;
  equal(loop.world().nodes.get("n1")?.lastSeenAt, T0 + 5_000);
});

Deno.test("a refused decision holds up nothing that comes after it", async () => {
  const { loop, broken, writes } = setUp();
  await loop.dispatch(registered("n1"));
  broken.slow = true;
  const refused = loop.dispatch({ kind: "cordon", node: "n1", by: "ops", reason: "" });
  const closed = loop.dispatch({ kind: "stream_closed", node: "n1" });
  writes.shift()?.reject(new HeddleError("system", "disk full"));
  await rejects(refused, /disk full/);
  await closed;
  deepEqual([loop.world().decisions.nodes.size, loop.world().nodes.get("n1")?.connected], [
    0,
    false,
  ]);
});

Deno.test("a decision that is stored after stop() is not acknowledged", async () => {
  const { loop, broken, writes } = setUp();
  await loop.dispatch(registered("n1"));
  broken.slow = true;
  const cordon = loop.dispatch({ kind: "cordon", node: "n1", by: "ops", reason: "" });
  loop.stop();
  writes.shift()?.resolve();
  await rejects(cordon, /does not lead any more/);
  equal(loop.world().decisions.nodes.size, 0);
});

Deno.test("while it is not known who leads nothing is decided, and all of it afterwards", async () => {
  const { loop, advance, broken, passes, sent, published } = setUp();
  broken.leads = false;
  await loop.dispatch(registered("n1"));
  for (let second = 0; second < 300; second += 5) {
    await loop.dispatch(heartbeat("n1"));
    advance(5_000);
  }
  deepEqual([passes.length, sent.length, published.length], [0, 0, 0]);
  broken.leads = true;
  advance(1_000);
  deepEqual(sent.map(({ kind, node }) => [kind, node]), [["start_shard", "n1"]]);
  ok([...loop.world().published.removed].length === 0, "a node that went on reporting is not lost");
});

/** The shard of the only replica has failed. */
function failed({ loop }: ReturnType<typeof setUp>, permanent = true): Event {
  const replica = [...loop.world().replicas.values()].at(-1);
  const [shard] = replica?.shards ?? [];
  return {
    kind: "shard_status",
    node: "n1",
    status: {
      shardId: shard?.id ?? "",
      replicaId: replica?.id ?? "",
      state: 9,
      attempt: 1,
      reason: "model_architecture_unknown",
      message: "no such architecture",
      permanent,
      address: "",
      apiKey: "",
      logTail: [],
      inStateMs: 0n,
      progress: "",
    },
  };
}

Deno.test("what fails for good is stored before a command goes out, and forgotten when an operator says so", async () => {
  const on = setUp();
  await on.loop.dispatch(registered("n1"));
  on.advance(1_000);
  on.sent.length = 0;
  await on.loop.dispatch(failed(on));
  on.advance(250);
  const [first] = on.remembered;
  ok(first?.kind === "failures" && first.failures?.failedStarts === 1);
  deepEqual(first.failures.blocked.map(({ profile }) => profile), ["h100"]);
  await on.loop.dispatch({ kind: "retry", model: "m", by: "ops" });
  deepEqual(on.stored.slice(-2).map(({ kind }) => kind), ["failures", "audit"]);
  deepEqual(on.stored.at(-2), { kind: "failures", model: "m" });
});

Deno.test("the loop goes on while the store refuses what failed, and stores it when it can", async () => {
  const on = setUp();
  await on.loop.dispatch(registered("n1"));
  on.advance(1_000);
  on.broken.remember = true;
  await on.loop.dispatch(failed(on));
  on.advance(250);
  // The rejection arrives a turn later.
  for (let turn = 0; turn < 10; turn++) await Promise.resolve();
  deepEqual(on.failures, ["Cannot store which starts failed, for a restart of control"]);
  equal(on.loop.world().models.get("m")?.blocked.length, 1);
  on.broken.remember = false;
  on.advance(4_000);
  equal(on.remembered.length, 0);
  on.advance(1_000);
  equal(on.remembered.length, 1);
});

Deno.test("what fails while a write is on its way is in the next one", async () => {
  const on = setUp();
  await on.loop.dispatch(registered("n1"));
  on.advance(1_000);
  on.broken.slow = true;
  await on.loop.dispatch(failed(on, false));
  on.advance(30_000);
  await on.loop.dispatch(registered("n1"));
  on.advance(30_000);
  await on.loop.dispatch(failed(on, false));
  on.advance(1_000);
  deepEqual([on.remembered.length, on.writes.length], [0, 1]);
  on.writes.shift()?.resolve();
  while (on.writes.length === 0) await Promise.resolve();
  on.writes.shift()?.resolve();
  while (on.remembered.length < 2) await Promise.resolve();
  deepEqual(
    on.remembered.map((record) => record.kind === "failures" && record.failures?.failedStarts),
    [1, 2],
  );
});
