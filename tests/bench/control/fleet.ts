/** A fleet that runs what it should: nodes of eight GPUs, and replicas over all of them. */
import type { Catalog } from "../../../control/core/catalog.ts";
import { record } from "../../../control/core/deciding/record.ts";
import type {
  CommandResultSeen,
  Registered,
  ShardStatusSeen,
} from "../../../control/core/event.ts";
import { observe } from "../../../control/core/observing/observe.ts";
import type { StartShard } from "../../../control/core/plan.ts";
import { publish } from "../../../control/core/publish.ts";
import { reconcile } from "../../../control/core/reconcile.ts";
import { catalog, registered } from "../../../control/core/testing/builders.ts";
import { NO_DECISIONS, startWorld, type World } from "../../../control/core/world.ts";
import { encodeShardState } from "@heddle/proto/shard_state";

/** How many fabrics the nodes are spread over; any number would do. */
const FABRICS = 8;

/** Models, so that a fleet of 2,000 replicas has 80 of them. */
const REPLICAS_PER_MODEL = 25;

export const T0 = 1_000_000;

export interface Fleet {
  readonly world: World;
  readonly nodes: readonly Registered[];
  readonly now: number;
}

/** `replicas` of two GPUs each, running and published on `nodes` nodes. */
export function runningFleet(nodes: number, replicas: number): Fleet {
  const registrations = nodesOf(nodes);
  let world = registerAll(freshWorld(catalogOf(replicas)), registrations);
  let now = T0;
  // Each pass places a bounded number. Time hardly passes, or nodes without heartbeats would be away.
  for (let pass = 0; pass < replicas + 10; pass++, now++) {
    const plan = reconcile(world, now);
    if (plan.actions.length === 0) break;
    world = publish(record(world, plan, now), now);
    for (const action of plan.actions) {
      if (action.kind === "start_shard") world = started(world, action, now);
    }
  }
  return { world: publish(world, now), nodes: registrations, now };
}

export function nodesOf(count: number): readonly Registered[] {
  return Array.from(
    { length: count },
    (_, index) =>
      registered(`n${index + 1}`, { gpus: 8, fabric: `ib-${index % FABRICS}`, hcas: 8 }),
  );
}

export function freshWorld(models: Catalog): World {
  return startWorld({
    cluster: "bench",
    storedTerm: 0,
    catalog: { catalog: models, text: "", revision: 1 },
    knownNodes: new Set(),
    decisions: NO_DECISIONS,
  }, T0);
}

export function registerAll(world: World, nodes: readonly Registered[]): World {
  return nodes.reduce((so, node) => observe(so, node, T0), world);
}

export function catalogOf(replicas: number): Catalog {
  const models = Math.max(1, Math.round(replicas / REPLICAS_PER_MODEL));
  const each = Math.ceil(replicas / models);
  return catalog(...Array.from({ length: models }, (_, index) => ({
    name: `model-${index + 1}`,
    source: "org/weights",
    scaling: { min: each, max: each },
    profiles: [{ name: "h100", gpu_class: "h100-80g", tp: 2 }],
  })));
}

function started(world: World, { node, shard, replica, revision, spec }: StartShard, now: number) {
  const wire = { term: BigInt(revision.term), sequence: BigInt(revision.sequence) };
  const answer: CommandResultSeen = {
    kind: "command_result",
    node,
    result: { revision: wire, shardId: shard, accepted: true, reason: "", detail: "" },
  };
  const status: ShardStatusSeen = {
    kind: "shard_status",
    node,
    status: {
      shardId: shard,
      replicaId: replica,
      state: encodeShardState("ready"),
      revision: wire,
      attempt: 1,
      reason: "",
      message: "",
      permanent: false,
      pid: 1,
      address: `10.0.0.1:${spec.portFirst}`,
      apiKey: "key",
      logTail: [],
      inStateMs: 0n,
      progress: "",
    },
  };
  return observe(observe(world, answer, now), status, now);
}
