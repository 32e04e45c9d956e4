import { deepEqual, equal, ok, throws } from "node:assert/strict";
import { HeddleError } from "@heddle/proto/error";
import type { Event } from "./core/event.ts";
import type { ShardCommand } from "./core/plan.ts";
import type { Published } from "./core/published.ts";
import type { StoreRecord } from "./core/store_record.ts";
import { modelOf, registered, T0, world } from "./core/testing/builders.ts";
import type { World } from "./core/world.ts";
import { createLoop, type Pass } from "./loop.ts";

/** A loop on a clock that only the test moves. */
function setUp(start: World = world([modelOf({ name: "m" })])) {
  let now = T0;
  const timers: { at: number; wake: () => void }[] = [];
  const sent: ShardCommand[] = [];
  const published: Published[] = [];
  const stored: StoreRecord[] = [];
  const passes: Pass[] = [];
  const failures: string[] = [];
  const broken = { send: false, publish: false, persist: false };
  const refuse = (broke: boolean) => {
    if (broke) throw new HeddleError("unavailable", "it is away");
  };
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
    effects: {
      sendCommand(_node, command) {
        refuse(broken.send);
        sent.push(command);
      },
      publish(each) {
        refuse(broken.publish);
        published.push(each);
      },
      persist(records) {
        refuse(broken.persist);
        stored.push(...records);
      },
    },
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
  return { loop, advance, sent, published, stored, passes, failures, timers, broken };
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

Deno.test("createLoop() stores the term, then makes a first pass and publishes", () => {
  const { advance, published, stored, passes } = setUp();
  deepEqual(stored, [{ kind: "term", term: 1 }]);
  advance(0);
  equal(passes.length, 1);
  deepEqual([...published.at(-1)?.models.keys() ?? []], ["m"]);
});

Deno.test("createLoop() throws when the store refuses the term", () => {
  const options = setUp();
  options.loop.stop();
  throws(() =>
    createLoop({
      world: world(),
      clock: { now: () => T0, setTimer: () => () => {} },
      effects: {
        sendCommand: () => {},
        publish: () => {},
        persist: () => {
          throw new HeddleError("system", "disk full");
        },
      },
      hooks: { passed: () => {}, failed: () => {} },
    }), /disk full/);
});

Deno.test("dispatch() gathers what many nodes say into one pass per 250 ms", () => {
  const { loop, advance, passes } = setUp();
  advance(0);
  for (let node = 1; node <= 20; node++) loop.dispatch(registered(`n${node}`));
  equal(passes.length, 1);
  advance(249);
  equal(passes.length, 1);
  advance(1);
  equal(passes.length, 2);
});

Deno.test("dispatch() makes a pass at once for an operator, and stores what was decided, by whom", () => {
  const { loop, advance, passes, stored } = setUp();
  loop.dispatch(registered("n1"));
  advance(1_000);
  const before = passes.length;
  loop.dispatch({ kind: "cordon", node: "n1", by: "ops", reason: "fan" });
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

Deno.test("dispatch() changes nothing and throws when the store refuses", () => {
  const { loop, advance, broken } = setUp();
  loop.dispatch(registered("n1"));
  advance(1_000);
  broken.persist = true;
  throws(() => loop.dispatch({ kind: "cordon", node: "n1", by: "ops", reason: "" }), /away/);
  equal(loop.world().decisions.nodes.size, 0);
});

Deno.test("the loop records a command before it is sent, and sends it again without an answer", () => {
  const { loop, advance, sent, failures, broken, stored } = setUp();
  broken.send = true;
  loop.dispatch(registered("n1"));
  advance(1_000);
  ok(stored.some((record) => record.kind === "known_node"));
  const shard = [...loop.world().replicas.values()][0]?.shards[0];
  equal(shard?.command?.kind, "start");
  deepEqual(failures, ["Cannot send start_shard for m-1-1-0 to n1"]);
  broken.send = false;
  loop.dispatch(heartbeat("n1"));
  advance(10_000);
  deepEqual(sent.map((command) => command.revision), [shard?.command?.revision]);
});

Deno.test("the loop goes on when one action fails", () => {
  const { loop, advance, sent, failures, broken } = setUp();
  broken.publish = true;
  loop.dispatch(registered("n1"));
  advance(1_000);
  ok(failures.includes("Cannot publish"));
  equal(sent.length, 1);
});

Deno.test("heartbeats that change nothing make no pass, and keep their node reachable", () => {
  const { loop, advance, passes } = setUp(world());
  loop.dispatch(registered("n1"));
  advance(1_000);
  const before = passes.length;
  for (let second = 0; second < 60; second += 5) {
    loop.dispatch(heartbeat("n1"));
    advance(5_000);
  }
  ok(passes.length - before <= 6, `${passes.length - before} passes in a minute of heartbeats`);
  equal(loop.world().nodes.get("n1")?.lastSeenAt, T0 + 56_000);
});

Deno.test("the loop wakes by itself when a node falls silent", () => {
  const { loop, advance, passes } = setUp();
  loop.dispatch(registered("n1"));
  advance(16_000);
  const plan = passes.at(-1)?.plan;
  ok(plan !== undefined && passes.length > 2);
  advance(60_000);
  ok([...loop.world().published.removed.values()].every((reason) => reason === "lost"));
});

Deno.test("stop() ends every timer, and nothing is executed afterwards", () => {
  const { loop, advance, timers, passes } = setUp();
  advance(0);
  loop.dispatch(registered("n1"));
  loop.stop();
  const before = passes.length;
  loop.dispatch(registered("n2"));
  advance(60_000);
  deepEqual([timers.length, passes.length, loop.world().nodes.size], [0, before, 1]);
});
