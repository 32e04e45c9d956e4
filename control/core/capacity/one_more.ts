/**
 * What one more node of a kind would hold: a fleet of nothing but such nodes is filled by the same
 * core that fills the real one. What else runs on the fleet plays no part, because a new node is empty.
 */
import type { Catalog, Model } from "../catalog.ts";
import type { EpochMs } from "../ids.ts";
import { NO_DECISIONS, type Node, type World } from "../world.ts";
import { hardwareClass } from "./running.ts";

/** Replicas that one node is tried with: far more than GPUs on any. */
export const FILL_MAX = 64;

/** Kinds of nodes that are looked at; a fleet with more has nodes that were put together one by one. */
export const KINDS_MAX = 8;

/** Nodes that are the same to placement. */
export interface NodeKind {
  readonly hardwareClass: string;
  readonly gpus: number;
  /** The healthiest of them. */
  readonly like: Node;
}

/** By class and number of GPUs, the larger ones first. */
export function kindsOf(world: World): readonly NodeKind[] {
  const kinds = new Map<string, NodeKind>();
  for (const node of [...world.nodes.values()].sort((a, b) => a.name < b.name ? -1 : 1)) {
    const { gpus } = node.inventory;
    const { gpuClass: gpu_class } = gpus.find(({ gpuClass }) => gpuClass !== "") ?? {};
    const kind = {
      hardwareClass: hardwareClass(gpu_class === undefined ? {} : { gpu_class }),
      gpus: gpus.length,
      like: node,
    };
    const key = `${kind.hardwareClass} ${kind.gpus}`;
    const before = kinds.get(key);
    if (before === undefined || problems(node) < problems(before.like)) kinds.set(key, kind);
  }
  return [...kinds.values()];
}

function problems({ inventory, connected }: Node): number {
  const counted = [inventory, ...inventory.gpus, ...inventory.hcas];
  return counted.reduce((sum, each) => sum + each.problems.length, connected ? 0 : 1);
}

/** How many nodes the largest replica that could run on this kind spans. */
export function nodesTogether(model: Model, kind: NodeKind): number {
  return model.profiles.filter((profile) => hardwareClass(profile) === kind.hardwareClass)
    .reduce((most, { nodes }) => Math.max(most, nodes), 1);
}

/** A world of so many nodes of the kind, with nothing on them. */
export function emptyWorld(world: World, { like }: NodeKind, count: number, now: EpochMs): World {
  const nodes = Array.from({ length: count }, (_, index): Node => ({
    ...like,
    name: `${like.name}+${index + 1}`,
    lastSeenAt: now,
    connected: true,
  }));
  const byName = new Map(nodes.map((node) => [node.name, node]));
  return {
    ...world,
    nodes: byName,
    knownNodes: new Set(byName.keys()),
    replicas: new Map(),
    models: new Map(),
    routers: new Map(),
    decisions: NO_DECISIONS,
  };
}

/** The catalog with exactly so many replicas of the model wanted, and nothing else changed. */
export function wanting(catalog: Catalog, name: string, count: number): Catalog {
  return {
    ...catalog,
    models: catalog.models.map((model) =>
      model.name === name
        ? { ...model, scaling: { ...model.scaling, min: count, max: Math.max(1, count) } }
        : model
    ),
  };
}
