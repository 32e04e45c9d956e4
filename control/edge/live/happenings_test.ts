import { deepEqual, equal, match } from "node:assert/strict";
import { observe } from "../../core/observing/observe.ts";
import {
  catalog,
  inventory,
  modelOf,
  registered,
  T0,
  world,
  worldWith,
} from "../../core/testing/builders.ts";
import { FakeNode } from "../../core/testing/fake_node.ts";
import { Simulation } from "../../core/testing/simulation.ts";
import { QUIET } from "./beside_fake.ts";
import { Happenings } from "./happenings.ts";

const MODEL = modelOf({ name: "m" });
const said = (happenings: Happenings) =>
  [...happenings.events().values()].map(({ kind, subject, text }) => `${kind} ${subject}: ${text}`);

Deno.test("Happenings says what changed its state, and why, and nothing at the first look", () => {
  const happenings = new Happenings(() => QUIET);
  const begun = worldWith([MODEL], { n1: {} });
  happenings.look(begun, T0);
  deepEqual(said(happenings), []);
  const cordoned = observe(
    begun,
    { kind: "cordon", node: "n1", by: "ann", reason: "fan" },
    T0,
  );
  happenings.look(cordoned, T0 + 1_000);
  deepEqual(said(happenings), ["node n1: ready → cordoned: fan"]);
  happenings.look(observe(cordoned, registered("n2"), T0), T0 + 2_000);
  match(said(happenings).at(-1) ?? "", /^node n2: ready/);
  happenings.look(cordoned, T0 + 3_000);
  equal(said(happenings).at(-1), "node n2: ready → gone");
  happenings.look(cordoned, T0 + 600_000);
  equal(said(happenings).at(-1), "node n1: cordoned → lost: fan");
  equal([...happenings.events().values()].at(-1)?.bad, true);
});

Deno.test("Happenings begins anew when control leads again, and remembers what was", () => {
  const happenings = new Happenings(() => QUIET);
  const begun = worldWith([MODEL], { n1: {} });
  happenings.look(begun, T0);
  happenings.look(observe(begun, registered("n2"), T0), T0);
  equal(said(happenings).length, 1);
  happenings.look(undefined, T0);
  happenings.look(world([MODEL], { storedTerm: 7 }), T0);
  equal(said(happenings).length, 1, "a new term is no list of what it does not know yet");
});

Deno.test("Happenings keeps 300 events, each cut to what a person reads", () => {
  const happenings = new Happenings(() => QUIET);
  const begun = worldWith([MODEL], { n1: {} });
  const long = "x".repeat(5_000);
  const cordoned = observe(begun, { kind: "cordon", node: "n1", by: "a", reason: long }, T0);
  for (let look = 0; look < 400; look++) happenings.look(look % 2 === 0 ? begun : cordoned, T0);
  const events = [...happenings.events().values()];
  equal(events.length, 300);
  equal(Math.max(...events.map(({ text }) => text.length)), 401);
});

Deno.test("Happenings tells of engines that something else started", () => {
  const happenings = new Happenings(() => QUIET);
  const { timings, ...rest } = worldWith([MODEL], {});
  const begun = { ...rest, timings: { ...timings, attachLeaseMs: 30_000 } };
  happenings.look(begun, T0);
  const attached = observe(begun, {
    kind: "attached_claimed",
    deployment: "rented",
    from: "10.0.0.9",
    claim: {
      ...{ engineId: "e1", model: "m", provider: "", endpoint: "", apiKey: "" },
      ...{ state: "serving", reason: "", message: "", agentVersion: "1", agentInstance: "a" },
      nodes: [{ index: 0, hostId: "", cards: [], cardsRead: true }],
    },
  }, T0);
  happenings.look(attached, T0);
  match(said(happenings).at(-1) ?? "", /^replica rented\/e1: ready/);
  happenings.look(attached, T0 + 30_000);
  match(said(happenings).at(-1) ?? "", /^replica rented\/e1: ready → failed: its agent is silent/);
});

Deno.test("Happenings tells when a replica may hang, hangs, hangs for another reason, and is well again", () => {
  const profiles = [{ name: "p", gpu_class: "h100-80g" }];
  const sim = new Simulation({
    seed: 1,
    known: true,
    nodes: [new FakeNode({ name: "n1", shape: { gpus: 1 }, loadMs: 1_000, stopMs: 500 })],
    catalog: catalog({ name: "m", source: "s", profiles }),
  });
  sim.run(20_000);
  const happenings = new Happenings(() => QUIET);
  happenings.look(sim.world, sim.now);
  const [shard] = [...sim.world.replicas.values()].flatMap(({ shards }) => shards);
  const says = (state: number, reason: string, message: string) => {
    const status = {
      ...{ shardId: shard?.id ?? "", replicaId: "", state, attempt: 1, reason, message },
      ...{ permanent: false, address: "10.0.0.1:1", apiKey: "k", logTail: [], progress: "" },
      inStateMs: 0n,
    };
    const next = observe(sim.world, { kind: "shard_status", node: "n1", status }, sim.now);
    happenings.look(next, sim.now);
  };
  const [ready, degraded] = [4, 5];
  says(ready, "suspected", "not answering for 15s");
  says(ready, "suspected", "not answering for 30s");
  says(degraded, "no_token", "no answer within 60 s");
  says(degraded, "engine_hung", "requests run");
  says(degraded, "engine_hung", "requests run");
  says(ready, "", "");
  const id = shard?.id ?? "";
  deepEqual(
    said(happenings).map((line) => line.replace(/^replica \S+: /, "")),
    [
      `ready → suspected: shard ${id} is suspected: not answering for 15s`,
      `suspected → degraded: shard ${id} is degraded: no_token: no answer within 60 s`,
      `degraded: shard ${id} is degraded: engine_hung: requests run`,
      "degraded → ready",
    ],
  );
  deepEqual([...happenings.events().values()].map(({ bad }) => bad), [false, true, true, false]);
});

Deno.test("Happenings tells of a node's problems once, when they come and when they are over", () => {
  const happenings = new Happenings(() => QUIET);
  const begun = worldWith([MODEL], { n1: {} });
  happenings.look(begun, T0);
  const whole = inventory("n1");
  const problem = (reason: string) => ({
    reason,
    detail: "GPU has fallen off the bus",
    remedy: "reset the GPU",
  });
  const broken = {
    ...whole,
    gpus: whole.gpus.map((gpu) => ({
      ...gpu,
      problems: [problem("gpu_xid"), problem("gpu_throttled")],
    })),
  };
  const bad = observe(begun, { ...registered("n1"), inventory: broken }, T0);
  happenings.look(bad, T0);
  happenings.look(bad, T0 + 2_000);
  deepEqual(said(happenings), ["node n1: gpu_xid: GPU 0: GPU has fallen off the bus"]);
  equal([...happenings.events().values()].at(-1)?.next, "reset the GPU");
  happenings.look(observe(bad, registered("n1"), T0), T0 + 4_000);
  equal(said(happenings).at(-1), "node n1: gpu_xid is over");
  equal([...happenings.events().values()].at(-1)?.bad, false);
});
