import { deepEqual, equal, match, rejects } from "node:assert/strict";
import { Code, createClient } from "@connectrpc/connect";
import { CapacityService } from "@heddle/proto/gen/capacity";
import type { StoredMeasurement } from "../../core/capacity/measurement.ts";
import { catalog } from "../../core/testing/builders.ts";
import { FakeNode } from "../../core/testing/fake_node.ts";
import { Simulation } from "../../core/testing/simulation.ts";
import { refused } from "../admin/admin_fake.ts";
import { operatorName } from "../caller.ts";
import { Listener, REALM } from "../listener_fake.ts";
import { capacityRpc } from "./capacity_rpc.ts";

const MODEL = {
  name: "m",
  aliases: ["default"],
  source: "org/w",
  scaling: { min: 2, max: 3 },
  slo: { ttft_p99: "2s" },
  profiles: [{ name: "big", gpu_class: "h100-80g", tp: 2 }],
};

/** Two nodes of four GPUs, settled, and the service over them with a store in memory. */
async function bench(model: object = MODEL) {
  const sim = new Simulation({
    seed: 1,
    known: true,
    catalog: catalog(model),
    nodes: ["n1", "n2"].map((name) =>
      new FakeNode({ name, shape: { gpus: 4, fabric: "ib" }, loadMs: 1_000, stopMs: 500 })
    ),
  });
  sim.run(120_000);
  let stored: readonly StoredMeasurement[] = [];
  const listener = await Listener.start({
    roles: ["operator"],
    routes: (router) =>
      router.service(
        CapacityService,
        capacityRpc({
          by: (context) => operatorName(context, REALM),
          loop: { world: () => sim.world, now: () => sim.now },
          measurements: () => Promise.resolve(stored),
          persist(records) {
            stored = [
              ...records.flatMap((each) => each.kind === "measurement" ? [each.measurement] : []),
              ...stored,
            ];
            return Promise.resolve();
          },
          wallClock: () => 1_800_000_000_000.4,
        }),
      ),
  });
  const client = createClient(CapacityService, await listener.connect("operator", "ann"));
  const ids = () => [...sim.world.replicas.keys()].sort();
  return {
    sim,
    client,
    ids,
    [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose](),
    record: (replicaIds: string[], parts: object = {}) =>
      client.recordMeasurement({
        replicaIds,
        shape: "chat",
        ttftMs: 2_000,
        tpotMs: 100,
        requestsPerSecond: 6,
        concurrency: 12,
        outputTokensPerSecond: 600,
        within: 0.99,
        spread: 0.02,
        ...parts,
      }),
  };
}

Deno.test("CapacityService knows of itself what was measured, for each replica", async () => {
  await using control = await bench();
  const { record, ids } = control;
  const { measurement } = await record(ids());
  const { $typeName: _, fingerprint, ...rest } = measurement ?? { $typeName: "", fingerprint: "" };
  match(fingerprint, /^[0-9a-f]{16}$/);
  deepEqual(rest, {
    model: "m",
    profile: "big",
    engine: "vllm",
    engineVersion: "0.28.1",
    hardwareClass: "h100-80g",
    shape: "chat",
    ttftMs: 2_000,
    tpotMs: 100,
    requestsPerSecond: 3,
    concurrency: 6,
    unstable: false,
    within: 0.99,
    outputTokensPerSecond: 300,
    replicas: 2,
    spread: 0.02,
    atMs: 1_800_000_000_000n,
    by: "ann",
  });
});

Deno.test("CapacityService says what is carried, what holds it, and what one more node adds", async () => {
  await using control = await bench();
  const { client, record, ids } = control;
  await record(ids());
  const { models: [said] } = await client.getCapacity({ model: "default", shape: "chat" });
  deepEqual(
    [said?.nowPerSecond, said?.mostPerSecond, said?.bottleneck, said?.bottleneckDetail],
    [6, 9, "scaling_max", "scaling.max is 3"],
  );
  deepEqual([said?.ttftMs, said?.tpotMs, said?.unmeasuredReplicas], [2_000, undefined, 0]);
  const [gain] = said?.gains ?? [];
  deepEqual(
    [gain?.hardwareClass, gain?.gpus, gain?.nodes, gain?.replicas, gain?.requestsPerSecond],
    ["h100-80g", 4, 1, 2, 6],
  );
  match(gain?.detail ?? "", /scaling\.max, 3, must rise/);
});

Deno.test("CapacityService names the hardware where that is what holds", async () => {
  await using control = await bench({ ...MODEL, scaling: { min: 2, max: 9 } });
  const { client, record, ids } = control;
  await record(ids());
  const { models: [said] } = await client.getCapacity({ model: "m", shape: "chat" });
  deepEqual([said?.mostPerSecond, said?.bottleneck], [12, "hardware"]);
  match(said?.bottleneckDetail ?? "", /0\/2 nodes fit: 2 gpus_free/);
  equal(said?.gains[0]?.detail, "");
});

Deno.test("CapacityService is honest about what nobody measured", async () => {
  await using control = await bench();
  const { client, record, ids } = control;
  for (const shape of ["rag", "chat"]) {
    const { models: [said] } = await client.getCapacity({ model: "m", shape });
    deepEqual(
      [said?.nowPerSecond, said?.mostPerSecond, said?.unmeasuredReplicas, said?.bottleneck],
      [0, 0, 3, "not_measured"],
    );
    match(said?.bottleneckDetail ?? "", new RegExp(`heddle bench m --shape ${shape}`));
    match(said?.gains[0]?.detail ?? "", /never measured/);
    await record(ids(), { shape: "batch" });
  }
});

Deno.test("CapacityService shares what a replica on two nodes carries between them", async () => {
  const spread = { name: "wide", gpu_class: "h100-80g", tp: 8, nodes: 2 };
  await using control = await bench({
    ...MODEL,
    scaling: { min: 1, max: 2 },
    profiles: [spread],
  });
  const { client, record, ids } = control;
  await record(ids());
  const { models: [said] } = await client.getCapacity({ model: "m", shape: "chat" });
  const [gain] = said?.gains ?? [];
  deepEqual([gain?.nodes, gain?.replicas, gain?.requestsPerSecond], [2, 1, 3]);
});

Deno.test("CapacityService takes no measurement that does not make sense", async () => {
  await using control = await bench();
  const { record, ids, sim } = control;
  const [id = ""] = ids();
  const cases: readonly (readonly [string[], object, Code, RegExp])[] = [
    [[], {}, Code.InvalidArgument, /names no replica/],
    [["m-9"], {}, Code.NotFound, /no replica "m-9"/],
    [[id], { requestsPerSecond: -1 }, Code.InvalidArgument, /requestsPerSecond is -1/],
    [[id], { within: 1.5 }, Code.InvalidArgument, /within is 1.5/],
    [[id], { ttftMs: NaN }, Code.InvalidArgument, /ttftMs is NaN/],
    [[id], { shape: "x".repeat(201) }, Code.InvalidArgument, /201 characters/],
  ];
  for (const [replicas, parts, code, words] of cases) {
    await rejects(record(replicas, parts), refused(code, words));
  }
  sim.dispatch({ kind: "stop_at_once", replica: id, by: "ann", reason: "" });
  sim.run(100);
  await rejects(record([id]), refused(Code.FailedPrecondition, /was perhaps not itself/));
});

Deno.test("CapacityService keeps what did not repeat, says so, and lets nothing stable go for it", async () => {
  await using control = await bench();
  const { client, record, ids } = control;
  const [one = ""] = ids();
  const doubted = { unstable: true, spread: 0.12 };
  const first = await record([one], { ...doubted, requestsPerSecond: 3 });
  deepEqual([first.kept, first.measurement?.unstable, first.measurement?.spread], [
    false,
    true,
    0.12,
  ]);
  const told = async () => {
    const [{ profiles, nowPerSecond } = { profiles: [], nowPerSecond: 0 }] =
      (await client.getCapacity({ model: "m", shape: "chat" })).models;
    return { nowPerSecond, notes: profiles[0]?.notes ?? [] };
  };
  const unstable = await told();
  equal(unstable.nowPerSecond, 6);
  match(
    unstable.notes[0] ?? "",
    /^not stable: .* 12 % apart; measure it again .*: heddle bench m --profile big --shape chat$/,
  );
  await record([one], { requestsPerSecond: 4 });
  deepEqual(await told(), { nowPerSecond: 8, notes: [] });
  const kept = await record([one], { ...doubted, requestsPerSecond: 9 });
  deepEqual([kept.kept, kept.measurement?.requestsPerSecond], [true, 4]);
  equal((await told()).nowPerSecond, 8);
  // Another promise is another question: the newest answer to it counts, as ever.
  equal((await record([one], { ...doubted, ttftMs: 500 })).kept, false);
});
