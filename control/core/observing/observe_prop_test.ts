import { deepEqual, equal } from "node:assert/strict";
import fc from "fast-check";
import type { Plain } from "@heddle/proto/plain";
import type { ShardReport, ShardSpec, ShardStatus } from "@heddle/proto/gen/types";
import { checkPlan } from "../check_plan.ts";
import { record } from "../deciding/record.ts";
import type { Event } from "../event.ts";
import { publish } from "../publish.ts";
import { reconcile } from "../reconcile.ts";
import { storeRecords } from "../store_record.ts";
import { modelOf, registered, T0, world } from "../testing/builders.ts";
import { casesOf } from "../testing/random.ts";
import { explainModel } from "../views/explain.ts";
import { viewModels } from "../views/models.ts";
import { viewNodes } from "../views/nodes.ts";
import { viewReplicas } from "../views/replicas.ts";
import { viewRouters } from "../views/routers.ts";
import type { World } from "../world.ts";
import { observe } from "./observe.ts";

const RUNS = casesOf(1_000);

const MODELS = [
  modelOf({ name: "a", scaling: { min: 1, max: 3 } }),
  modelOf({ name: "b", scaling: { min: 0 } }, { tp: 8, pp: 2, nodes: 2 }),
];

const node = fc.constantFrom("n1", "n2", "n3", "nowhere");
const model = fc.constantFrom("a", "b", "gone");
const replica = fc.constantFrom("a-1-1", "a-1-2", "b-1-1", "b-1-3", "x");
const rank = fc.integer({ min: 0, max: 2 });
const revision = fc.record({
  term: fc.integer({ min: 0, max: 4 }),
  sequence: fc.integer({ min: 0, max: 20 }),
});
const small = fc.integer({ min: 0, max: 5 });

const status: fc.Arbitrary<Plain<ShardStatus>> = fc.record({
  replica,
  rank,
  state: fc.integer({ min: 0, max: 11 }),
  revision,
  permanent: fc.boolean(),
  reason: fc.constantFrom("", "exited", "out_of_memory"),
  load: fc.option(small, { nil: undefined }),
}).map(({ replica, rank, revision, load, ...rest }) => ({
  ...rest,
  shardId: `${replica}-${rank}`,
  replicaId: replica,
  revision: { term: BigInt(revision.term), sequence: BigInt(revision.sequence) },
  attempt: 1,
  message: "",
  address: rank === 0 ? "10.0.0.1:20000" : "",
  apiKey: "",
  logTail: [],
  inStateMs: 5n,
  ...(load === undefined ? {} : { runningRequests: load, waitingRequests: 0 }),
  progress: "",
}));

const spec = fc.record({ replica, rank, model, gpus: fc.subarray([0, 1, 2, 3]), block: small })
  .map(({ replica, rank, model, gpus, block }): Plain<ShardSpec> => ({
    shardId: `${replica}-${rank}`,
    replicaId: replica,
    rank,
    shardCount: replica.startsWith("b") ? 2 : 1,
    attempt: 1,
    model,
    profile: "h100",
    fingerprint: "f",
    engine: "vllm",
    engineVersion: "",
    source: "org/weights",
    tp: 1,
    pp: 1,
    dp: 1,
    gpus: gpus.map((index) => ({ index, uuid: `GPU-n1-${index}` })),
    fabric: "",
    hcas: [],
    portFirst: 20_000 + 256 * block,
    portCount: 256,
    leaderAddress: "",
    leaderPort: 0,
    args: [],
    env: {},
    launchMode: "mp",
    startupTimeoutMs: 60_000,
    stopTimeoutMs: 60_000,
    unsafeEnv: false,
    memoryBytes: 0n,
  }));

const report: fc.Arbitrary<Plain<ShardReport>> = fc.record({ spec, status }).map((each) => ({
  spec: each.spec,
  status: { ...each.status, shardId: each.spec.shardId, replicaId: each.spec.replicaId },
}));

const who = { by: fc.constant("ops"), reason: fc.constant("") };
const kind = <K extends string>(...kinds: readonly K[]) => fc.constantFrom(...kinds);

/** Anything at all, in any order: also what no honest peer would send. */
const event: fc.Arbitrary<Event> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      node,
      shards: fc.array(report, { maxLength: 3 }),
      revision,
      boot: small,
    }).map(
      ({ node, shards, revision, boot }) =>
        registered(node, { fabric: "ib" }, {
          shards,
          highestRevision: revision,
          bootId: `${boot}`,
        }),
    ),
  },
  { weight: 4, arbitrary: fc.record({ kind: kind("shard_status"), node, status }) },
  fc.record({
    kind: kind("command_result"),
    node,
    result: fc.record({
      replica,
      rank,
      revision,
      accepted: fc.boolean(),
      reason: kind("", "stale_revision", "gpu_in_use"),
    })
      .map(({ replica, rank, revision, ...rest }) => ({
        ...rest,
        shardId: `${replica}-${rank}`,
        revision: { term: BigInt(revision.term), sequence: BigInt(revision.sequence) },
        detail: "",
      })),
  }),
  fc.record({ kind: kind("stream_closed"), node }),
  fc.record({ kind: kind("cordon", "drain"), node, ...who }),
  fc.record({ kind: kind("uncordon", "forget_node"), node, by: who.by }),
  fc.record({ kind: kind("pause"), model, ...who }),
  fc.record({ kind: kind("resume", "clear_scale", "retry"), model, by: who.by }),
  fc.record({ kind: kind("scale"), model, replicas: small, ...who }),
  fc.record({ kind: kind("wake"), model }),
  fc.record({ kind: kind("router_gone"), router: kind("r/1", "r/2") }),
  fc.record({
    kind: kind("router_report"),
    router: kind("r/1", "r/2"),
    version: fc.constant("0"),
    instance: fc.constant("1"),
    applied: revision,
    replicas: replica.map((id) => new Map([[id, { inFlight: 2, reservedTokens: 0 }]])),
    models: model.map((name) => new Map([[name, { waiting: 0, requests: 1, failures: 0 }]])),
  }),
  fc.constant<Event>({ kind: "tick" }),
);

const history = fc.array(fc.record({ event, afterMs: fc.integer({ min: 0, max: 30_000 }) }), {
  maxLength: 30,
});

/** Lives through a history, with a pass after each event, as the loop would make it. */
function live(
  steps: readonly { readonly event: Event; readonly afterMs: number }[],
  look: (world: World, now: number) => void,
): World {
  let now = T0;
  let so = world(MODELS);
  for (const { event, afterMs } of steps) {
    now += afterMs;
    so = observe(so, event, now);
    look(so, now);
    so = publish(record(so, reconcile(so, now), now), now);
  }
  return so;
}

Deno.test("no history of events makes a plan that checkPlan() refuses", () => {
  fc.assert(
    fc.property(history, (steps) => {
      live(steps, (so, now) => deepEqual(checkPlan(so, reconcile(so, now), now), []));
    }),
    RUNS,
  );
});

Deno.test("every view can be made of any world", () => {
  fc.assert(
    fc.property(history, (steps) => {
      live(steps, (so, now) => {
        equal(viewNodes(so, now).length, new Set([...so.knownNodes, ...so.nodes.keys()]).size);
        equal(viewReplicas(so, now).length, so.replicas.size);
        viewRouters(so, now);
        for (const { name } of viewModels(so, now)) explainModel(so, name, now);
      });
    }),
    RUNS,
  );
});

Deno.test("observe() gives the same world for a tick, and for what it knows nothing about", () => {
  fc.assert(
    fc.property(history, (steps) => {
      live(steps, (so, now) => {
        equal(observe(so, { kind: "tick" }, now), so);
        equal(observe(so, { kind: "stream_closed", node: "never-heard-of" }, now), so);
        equal(observe(so, { kind: "wake", model: "never-heard-of" }, now), so);
      });
    }),
    RUNS,
  );
});

Deno.test("observe() never lowers the term, and each rise is stored", () => {
  fc.assert(
    fc.property(history, (steps) => {
      let now = T0;
      let so = world(MODELS);
      for (const { event, afterMs } of steps) {
        now += afterMs;
        const next = observe(so, event, now);
        equal(next.term >= so.term, true);
        const stored = storeRecords(so, next, event, now).some((each) => each.kind === "term");
        equal(stored, next.term > so.term);
        so = next;
      }
    }),
    RUNS,
  );
});
