/** A node as placement sees it: what it has, less what shards hold there. */
import type { Plain } from "@heddle/proto/plain";
import type { Gpu, Hca, Inventory } from "@heddle/proto/gen/types";
import type { NodeState } from "@heddle/proto/node_state";
import { nodeState } from "../facts/node_state.ts";
import { holds } from "../facts/shard_facts.ts";
import type { EpochMs, NodeId, ShardId } from "../ids.ts";
import type { Node, Shard, World } from "../world.ts";

export interface Candidate {
  readonly name: NodeId;
  readonly state: NodeState;
  /** It has registered with this control; one that is only known has nothing to place on. */
  readonly registered: boolean;
  /** Its stream is open, so that a command reaches it. */
  readonly connected: boolean;
  readonly address: string;
  readonly inventory: Plain<Inventory>;
  /** The node's own labels, under those that operators put on it. */
  readonly labels: Readonly<Record<string, string>>;
  /** Whole, healthy, of a known class, and held by no shard. By index. */
  readonly freeGpus: readonly Plain<Gpu>[];
  /** Held by a shard of ours. */
  readonly heldGpuCount: number;
  /** Blocks of ports that shards hold: first and count. */
  readonly heldPorts: readonly PortRange[];
  /** First ports of blocks where something that is not ours was found lately. */
  readonly foreignPorts: ReadonlySet<number>;
  /** Host memory that shards were promised. */
  readonly promisedMemoryBytes: number;
  /** How many shards of each model are there. */
  readonly models: ReadonlyMap<string, number>;
}

export interface PortRange {
  readonly first: number;
  readonly count: number;
}

/** A shard with the model it serves. */
interface Holding {
  readonly model: string;
  readonly shard: Shard;
}

/** Every node that is known, by name; also those that have not registered yet. */
export function candidates(world: World, now: EpochMs): ReadonlyMap<NodeId, Candidate> {
  const holdings = new Map<NodeId, Holding[]>();
  for (const replica of world.replicas.values()) {
    for (const shard of replica.shards) {
      if (!holds(shard)) continue;
      const there = holdings.get(shard.node) ?? [];
      there.push({ model: replica.model, shard });
      holdings.set(shard.node, there);
    }
  }
  const names = [...new Set([...world.knownNodes, ...world.nodes.keys()])].sort();
  return new Map(names.map((name) => {
    const node = world.nodes.get(name);
    return [
      name,
      node === undefined
        ? unregistered(world, name, now)
        : candidate(world, node, holdings.get(name) ?? [], now),
    ];
  }));
}

function unregistered(world: World, name: NodeId, now: EpochMs): Candidate {
  return {
    name,
    state: nodeState(world, name, false, now),
    registered: false,
    connected: false,
    address: "",
    inventory: NOTHING_KNOWN,
    labels: world.decisions.labels.get(name) ?? {},
    freeGpus: [],
    heldGpuCount: 0,
    heldPorts: [],
    foreignPorts: new Set(),
    promisedMemoryBytes: 0,
    models: new Map(),
  };
}

const NOTHING_KNOWN: Plain<Inventory> = {
  hostname: "",
  os: "",
  arch: "",
  cpuCount: 0,
  driverVersion: "",
  gpus: [],
  hcas: [],
  fabrics: [],
  engines: [],
  enginesProbed: false,
  modelDirs: [],
  modelFiles: [],
  modelFilesPresent: false,
  enginePortFirst: 0,
  enginePortLast: 0,
  enginePortBlock: 0,
  problems: [],
  labels: {},
  managementInterface: "",
};

function candidate(
  world: World,
  node: Node,
  holdings: readonly Holding[],
  now: EpochMs,
): Candidate {
  const { inventory } = node;
  const empty: Candidate = {
    name: node.name,
    state: nodeState(world, node.name, holdings.length > 0, now),
    registered: true,
    connected: node.connected,
    address: node.address,
    inventory,
    labels: { ...inventory.labels, ...world.decisions.labels.get(node.name) },
    freeGpus: inventory.gpus.filter(usable).toSorted((a, b) => a.index - b.index),
    heldGpuCount: 0,
    heldPorts: [],
    foreignPorts: foreignPorts(node, now),
    promisedMemoryBytes: 0,
    models: new Map(),
  };
  return holdings.reduce((so, { model, shard }) => withShard(so, model, shard.spec), empty);
}

/** How long a block where something foreign was found comes after all others. */
const FOREIGN_PORT_MS = 60 * 60_000;

function foreignPorts(node: Node, now: EpochMs): ReadonlySet<number> {
  return new Set(
    [...node.foreignPorts ?? []].filter(([, at]) => now - at < FOREIGN_PORT_MS)
      .map(([first]) => first),
  );
}

/** The candidate after a shard with this spec was given to it. */
export function withShard(
  candidate: Candidate,
  model: string,
  spec: Shard["spec"],
): Candidate {
  const taken = new Set(spec.gpus.map((gpu) => gpu.uuid));
  return {
    ...candidate,
    freeGpus: candidate.freeGpus.filter((gpu) => !taken.has(gpu.uuid)),
    heldGpuCount: candidate.heldGpuCount + spec.gpus.length,
    heldPorts: [...candidate.heldPorts, { first: spec.portFirst, count: spec.portCount }],
    promisedMemoryBytes: candidate.promisedMemoryBytes + Number(spec.memoryBytes),
    models: new Map(candidate.models).set(model, (candidate.models.get(model) ?? 0) + 1),
  };
}

/** Candidates as if these shards held nothing: for asking what room a drain would make. */
export function candidatesWithout(
  world: World,
  shards: ReadonlySet<ShardId>,
  now: EpochMs,
): ReadonlyMap<NodeId, Candidate> {
  const replicas = new Map(
    [...world.replicas].map(([id, replica]) => [id, {
      ...replica,
      shards: replica.shards.filter((shard) => !shards.has(shard.id)),
    }]),
  );
  return candidates({ ...world, replicas }, now);
}

/** A GPU that placement may use: nothing is wrong with it and its class and memory are known. */
export function usable(gpu: Plain<Gpu>): boolean {
  return gpu.problems.length === 0 && gpu.gpuClass !== "" && gpu.uuid !== "";
}

/** Ports of a fabric that can carry traffic now, in the order every rank lists them. */
export function fabricPorts(inventory: Plain<Inventory>, fabric: string): readonly Plain<Hca>[] {
  return inventory.hcas
    .filter((hca) => hca.fabric === fabric && hca.active && hca.problems.length === 0)
    .toSorted((a, b) => compareNames(a.name, b.name) || a.port - b.port);
}

/** "mlx5_2" before "mlx5_10": NCCL pairs adapters by their place in the list. */
function compareNames(a: string, b: string): number {
  const [, headA = a, tailA = ""] = /^(.*?)(\d+)$/.exec(a) ?? [];
  const [, headB = b, tailB = ""] = /^(.*?)(\d+)$/.exec(b) ?? [];
  if (headA !== headB) return headA < headB ? -1 : 1;
  return Number(tailA) - Number(tailB);
}
