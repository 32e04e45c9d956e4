/** Nodes as operators see them. */
import { nodeState } from "../facts/node_state.ts";
import { holds } from "../facts/shard_facts.ts";
import type { EpochMs, NodeId, ReplicaId } from "../ids.ts";
import type { World } from "../world.ts";
import type { NodeView } from "../views.ts";

/** Every node that control knows, by name; also those it has not heard from yet. */
export function viewNodes(world: World, now: EpochMs): readonly NodeView[] {
  const held = heldByNode(world);
  const names = new Set([...world.knownNodes, ...world.nodes.keys()]);
  return [...names].sort().map((name) => viewNode(world, name, held.get(name) ?? NOTHING, now));
}

interface Held {
  readonly gpus: ReadonlySet<number>;
  readonly replicas: ReadonlySet<ReplicaId>;
}

const NOTHING: Held = { gpus: new Set(), replicas: new Set() };

function heldByNode(world: World): ReadonlyMap<NodeId, Held> {
  const all = new Map<NodeId, { gpus: Set<number>; replicas: Set<ReplicaId> }>();
  for (const replica of world.replicas.values()) {
    for (const shard of replica.shards) {
      if (!holds(shard)) continue;
      const there = all.get(shard.node) ?? { gpus: new Set(), replicas: new Set() };
      for (const gpu of shard.spec.gpus) there.gpus.add(gpu.index);
      there.replicas.add(replica.id);
      all.set(shard.node, there);
    }
  }
  return all;
}

function viewNode(world: World, name: NodeId, held: Held, now: EpochMs): NodeView {
  const node = world.nodes.get(name);
  const decision = world.decisions.nodes.get(name);
  const labels = world.decisions.labels.get(name);
  return {
    name,
    state: nodeState(world, name, held.replicas.size > 0, now),
    address: node?.address ?? "",
    agentVersion: node?.agentVersion ?? "",
    ...(node === undefined ? {} : {
      inventory: { ...node.inventory, labels: { ...node.inventory.labels, ...labels } },
      lastSeenMs: Math.max(0, now - node.lastSeenAt),
    }),
    usedGpus: [...held.gpus].sort((a, b) => a - b),
    replicaIds: [...held.replicas].sort(),
    cordoned: decision?.kind === "cordon",
    draining: decision?.kind === "drain",
    decidedBy: decision?.by ?? "",
    decisionReason: decision?.reason ?? "",
    operatorLabels: labels ?? {},
  };
}
