import { deepEqual, equal } from "node:assert/strict";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  GetCatalogResponseSchema,
  GetVersionResponseSchema,
  NodeViewSchema,
  ReplicaViewSchema,
  RouterViewSchema,
} from "@heddle/proto/gen/admin";
import { AttachedState } from "@heddle/proto/gen/attach";
import { InstallState } from "@heddle/proto/gen/engines";
import { NodeState, ReplicaState, ShardState } from "@heddle/proto/gen/types";
import { NodeWeightsSchema, WeightsState } from "@heddle/proto/gen/weights";
import { formatStatus } from "../commands/status.ts";
import { type Fleet, statusOf } from "./fleet_status.ts";
import { servingConcerns } from "./serving_concerns.ts";

const version = create(GetVersionResponseSchema, {
  version: "0.1.0",
  cluster: "lab",
  settled: true,
});

const ready = (shards: MessageInitShape<typeof ReplicaViewSchema>["shards"] = []) =>
  create(ReplicaViewSchema, { replicaId: "demo-1", state: ReplicaState.READY, shards });

const attached = (
  state: AttachedState,
  more: { readonly state?: ReplicaState; readonly reason?: string } = {},
) =>
  create(ReplicaViewSchema, {
    replicaId: "vast/e1",
    profile: "attached",
    state: ReplicaState.READY,
    attached: { state },
    ...more,
  });

const concernsOf = (found: Partial<Parameters<typeof servingConcerns>[0]>) =>
  servingConcerns({ replicas: [], nodes: [], weights: [], ...found })
    .map(({ subject, what, next }) => `${subject}: ${what} → ${next}`);

Deno.test("status: a ready replica with a degraded shard is no fleet that is well", () => {
  const fleet: Fleet = {
    catalog: create(GetCatalogResponseSchema, { fileState: "applied" }),
    version,
    nodes: [create(NodeViewSchema, {
      name: "gpu-1",
      state: NodeState.READY,
      inventory: {
        installs: {
          installs: [{
            name: "vllm",
            version: "0.33.0",
            wanted: true,
            state: InstallState.FAILED,
            reason: "driver_too_old",
            message: "it needs driver 525",
            retryInMs: 60_000n,
          }],
        },
      },
    })],
    models: [],
    replicas: [
      ready([
        { shardId: "demo-1/0", node: "gpu-1", state: ShardState.READY },
        {
          shardId: "demo-1/1",
          node: "gpu-2",
          state: ShardState.DEGRADED,
          reason: "link_lost",
          message: "GPU 3 lost NVLink 2",
        },
      ]),
      create(ReplicaViewSchema, { replicaId: "demo-2", state: ReplicaState.READY }),
    ],
    routers: [create(RouterViewSchema, { name: "r", leased: true, current: true })],
    weights: [create(NodeWeightsSchema, {
      node: "gpu-1",
      models: ["demo"],
      weights: {
        want: { source: "hf://a/b" },
        state: WeightsState.FAILED,
        reason: "disk_full",
        message: "12 GiB are free",
      },
    })],
  };
  equal(
    formatStatus(version, statusOf(fleet)),
    `Cluster   lab, control 0.1.0
Nodes     1 ready
GPUs      0 of 0 free
Models    0 of 0 serving
Replicas  1 degraded, 1 ready
Routers   1
Requests  0 in flight, 0 waiting

3 things to look at:
  replica demo-1: shard demo-1/1 on gpu-2 is degraded: link_lost: GPU 3 lost NVLink 2
    → heddle logs demo-1/1; where it stays: heddle replicas restart demo-1
  node gpu-1 engine vllm 0.33.0: could not be installed: driver_too_old: it needs driver 525: tried again in 1m
    → heddle engines shows how it goes on; heddle logs gpu-1 agent has more
  node gpu-1 weights hf://a/b: could not be fetched: disk_full: 12 GiB are free
    → once the cause is gone: heddle weights prefetch demo --nodes gpu-1
`,
  );
});

Deno.test("several bad shards are one concern; one not yet heard of, or of what starts, is none", () => {
  const hung = { node: "n", state: ShardState.DEGRADED, reason: "engine_hung" } as const;
  deepEqual(
    concernsOf({ replicas: [ready([{ ...hung, shardId: "a" }, { ...hung }, { ...hung }])] }),
    [
      "replica demo-1: shard a on n is degraded: engine_hung; and 2 more of its shards → " +
      "heddle logs a; where it stays: heddle replicas restart demo-1",
    ],
  );
  const starting = create(ReplicaViewSchema, { state: ReplicaState.STARTING, shards: [hung] });
  const quiet = ready([{ state: ShardState.PREPARING }, { state: ShardState.READY }]);
  deepEqual(concernsOf({ replicas: [starting, quiet] }), []);
});

Deno.test("attached engines: degraded, lost, or nowhere to be reached", () => {
  deepEqual(
    concernsOf({
      replicas: [
        attached(AttachedState.SERVING),
        attached(AttachedState.ASSEMBLING, { state: ReplicaState.STARTING, reason: "loads" }),
        attached(AttachedState.DRAINING, { state: ReplicaState.DRAINING }),
        attached(AttachedState.DEGRADED, { reason: "engine_hung" }),
        attached(AttachedState.DEGRADED),
        attached(AttachedState.LOST, { state: ReplicaState.FAILED, reason: "its agent is silent" }),
        attached(AttachedState.SERVING, { reason: "not routed to: no endpoint: set IT" }),
      ],
    }),
    [
      "attached engine vast/e1: is degraded: engine_hung → look at the engine on its box; to send " +
      "nothing there: heddle drain vast/e1/0",
      "attached engine vast/e1: is degraded: its agent says so → look at the engine on its box; to " +
      "send nothing there: heddle drain vast/e1/0",
      "attached engine vast/e1: is lost: its agent is silent → look at its box, and at the log of " +
      "heddle-attach there",
      "attached engine vast/e1: serves, and not as it should: not routed to: no endpoint: set IT → " +
      "docs/attach.md says what an engine's box and the catalog must say",
    ],
  );
});

Deno.test("installs and fetches that go on, or that nobody wants, are none; leftovers are removed", () => {
  const install = { name: "vllm", version: "1", state: InstallState.FAILED } as const;
  const node = create(NodeViewSchema, {
    name: "n",
    inventory: {
      installs: { installs: [install, { ...install, wanted: true, state: InstallState.WAITING }] },
    },
  });
  const fetched = (weights: MessageInitShape<typeof NodeWeightsSchema>["weights"]) =>
    create(NodeWeightsSchema, { node: "n", weights });
  deepEqual(
    concernsOf({
      nodes: [node],
      weights: [
        fetched({ state: WeightsState.FETCHING, reason: "slow" }),
        fetched({ state: WeightsState.READY }),
        fetched({ state: WeightsState.FAILED, folder: "a-b-1" }),
      ],
    }),
    ["node n weights a-b-1: could not be fetched → heddle weights remove n a-b-1"],
  );
});

Deno.test("status: an engine that may hang is told of while it is only suspected", () => {
  const message = "not answering for 30s; it is called hung at 1m";
  const shards = [{ shardId: "demo-1/0", node: "gpu-1", state: ShardState.READY }];
  const suspected = ready(shards.map((shard) => ({ ...shard, reason: "suspected", message })));
  deepEqual(concernsOf({ replicas: [suspected, ready(shards)] }), [
    "replica demo-1: shard demo-1/0 on gpu-1 may hang: not answering for 30s; it is called hung at " +
    "1m → heddle logs demo-1/0; where it stays: heddle replicas restart demo-1",
  ]);
  const known = statusOf({
    catalog: create(GetCatalogResponseSchema, { fileState: "applied" }),
    version,
    nodes: [],
    models: [],
    routers: [],
    weights: [],
    replicas: [suspected, ready(shards)],
  });
  deepEqual(known.replicas, { suspected: 1, ready: 1 });
});
