/** Signs of life with live values. Most change no decision; matters.ts tells which do. */
import type { Plain } from "@heddle/proto/plain";
import type { Heartbeat } from "@heddle/proto/gen/agent";
import type { Inventory } from "@heddle/proto/gen/types";
import type { EpochMs, NodeId } from "../ids.ts";
import type { Node, Replica, Shard, World } from "../world.ts";

export interface Beat {
  readonly node: NodeId;
  readonly heartbeat: Plain<Heartbeat>;
  readonly at: EpochMs;
}

/** Folds many beats in at once: one copy of the maps and one look at replicas, whatever their number. */
export function observeHeartbeats(world: World, beats: Iterable<Beat>): World {
  let nodes: Map<NodeId, Node> | undefined;
  const loads = new Map<NodeId, Loads>();
  for (const { node: name, heartbeat, at } of beats) {
    const node = (nodes ?? world.nodes).get(name);
    if (node === undefined) continue;
    nodes ??= new Map(world.nodes);
    nodes.set(name, {
      ...node,
      lastSeenAt: Math.max(node.lastSeenAt, at),
      inventory: withLive(node.inventory, heartbeat),
    });
    if (heartbeat.loads.length === 0) continue;
    const byShard = new Map(heartbeat.loads.map((load) => [load.shardId, load]));
    loads.set(name, { byShard, at });
  }
  return nodes === undefined ? world : { ...withLoads(world, loads), nodes };
}

interface Loads {
  readonly byShard: ReadonlyMap<string, Load>;
  readonly at: EpochMs;
}

type Load = Plain<Heartbeat>["loads"][number];

/** Lists are whole when present; what is absent is as it was. */
export function withLive(
  inventory: Plain<Inventory>,
  heartbeat: Plain<Heartbeat>,
): Plain<Inventory> {
  return {
    ...inventory,
    ...(heartbeat.hardwarePresent
      ? {
        gpus: heartbeat.gpus,
        hcas: heartbeat.hcas,
        fabrics: heartbeat.fabrics,
        problems: heartbeat.problems,
      }
      : {}),
    ...(heartbeat.modelDirs.length > 0 ? { modelDirs: heartbeat.modelDirs } : {}),
    ...(heartbeat.modelFilesPresent
      ? { modelFiles: heartbeat.modelFiles, modelFilesPresent: true }
      : {}),
    ...(heartbeat.enginesPresent ? { engines: heartbeat.engines, enginesProbed: true } : {}),
    ...(heartbeat.load === undefined ? {} : { load: heartbeat.load }),
    ...(heartbeat.weights === undefined ? {} : { weights: heartbeat.weights }),
    ...(heartbeat.installs === undefined ? {} : { installs: heartbeat.installs }),
    ...(heartbeat.memoryBytes === undefined ? {} : { memoryBytes: heartbeat.memoryBytes }),
  };
}

function withLoads(world: World, loads: ReadonlyMap<NodeId, Loads>): World {
  if (loads.size === 0) return world;
  let replicas: Map<string, Replica> | undefined;
  for (const replica of world.replicas.values()) {
    if (!replica.shards.some((shard) => loads.get(shard.node)?.byShard.has(shard.id))) continue;
    replicas ??= new Map(world.replicas);
    replicas.set(replica.id, {
      ...replica,
      shards: replica.shards.map((shard) => withLoad(shard, loads.get(shard.node))),
    });
  }
  return replicas === undefined ? world : { ...world, replicas };
}

function withLoad(shard: Shard, loads: Loads | undefined): Shard {
  const { runningRequests: running, waitingRequests: waiting } = loads?.byShard.get(shard.id) ?? {};
  if (shard.status === undefined || loads === undefined) return shard;
  if (running === undefined || waiting === undefined) return shard;
  return { ...shard, status: { ...shard.status, load: { running, waiting, at: loads.at } } };
}
