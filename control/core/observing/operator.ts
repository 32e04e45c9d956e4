/** Operators' decisions. They are facts here; the store keeps them (store_record.ts). */
import type { OperatorEvent } from "../event.ts";
import { NODE_FORGOTTEN } from "../facts/replica_judgement.ts";
import { unheard } from "../facts/settled.ts";
import type { EpochMs } from "../ids.ts";
import { withoutEntry, withoutMember } from "./layered_map.ts";
import type { Decisions, ModelRecord, Replica, World } from "../world.ts";
import { cleared } from "./catalog.ts";
import { goneStatus } from "./command_result.ts";

export function observeOperator(world: World, event: OperatorEvent, now: EpochMs): World {
  switch (event.kind) {
    case "cordon":
    case "drain": {
      const { kind, by, reason } = event;
      return decided(world, "nodes", event.node, { kind, by, reason, at: now });
    }
    case "uncordon":
      return decided(world, "nodes", event.node, undefined);
    case "label": {
      const labels = labelled(world.decisions.labels.get(event.node), event);
      return decided(world, "labels", event.node, labels);
    }
    case "pause":
      return decided(world, "paused", event.model, { by: event.by, reason: event.reason, at: now });
    case "resume":
      return decided(world, "paused", event.model, undefined);
    case "scale": {
      const { replicas, by, reason } = event;
      return decided(world, "scales", event.model, { replicas, by, reason, at: now });
    }
    case "clear_scale":
      return rescaled(decided(world, "scales", event.model, undefined), event.model);
    case "retry": {
      const record = world.models.get(event.model);
      return record === undefined
        ? world
        : { ...world, models: new Map(world.models).set(event.model, cleared(record)) };
    }
    case "forget_node":
      return forgetNode(world, event.node, now);
    case "restart":
    case "stop":
    case "stop_at_once": {
      const { kind, by, reason } = event;
      return decided(withoutGone(world), "replicas", event.replica, { kind, by, reason, at: now });
    }
    case "strike": {
      const { struck, issuedBefore, by, reason } = event;
      return decided(world, "struck", struck, { issuedBefore, by, reason, at: now });
    }
  }
}

type Label = Extract<OperatorEvent, { kind: "label" }>;

/** Undefined when none is left. */
function labelled(
  before: Readonly<Record<string, string>> = {},
  { set, remove }: Label,
): Readonly<Record<string, string>> | undefined {
  const removed = new Set(remove);
  const kept = Object.entries({ ...before, ...set }).filter(([key]) => !removed.has(key));
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

/** What was decided about replicas that are no more, once every node has said what it runs. */
function withoutGone(world: World): World {
  const { decisions } = world;
  const gone = [...decisions.replicas.keys()].filter((id) => !world.replicas.has(id));
  if (gone.length === 0 || unheard(world).length > 0) return world;
  const replicas = new Map(decisions.replicas);
  for (const id of gone) replicas.delete(id);
  return { ...world, decisions: { ...decisions, replicas } };
}

type ValueOf<K extends keyof Decisions> = Decisions[K] extends ReadonlyMap<string, infer V> ? V
  : never;

function decided<K extends keyof Decisions>(
  world: World,
  kind: K,
  subject: string,
  value: ValueOf<K> | undefined,
): World {
  const map = new Map<string, unknown>(world.decisions[kind]);
  if (value === undefined) {
    if (!map.delete(subject)) return world;
  } else {
    map.set(subject, value);
  }
  return { ...world, decisions: { ...world.decisions, [kind]: map } };
}

/** Demand is judged anew, from what runs. */
function rescaled(world: World, model: string): World {
  const record = world.models.get(model);
  if (record?.scaled === undefined) return world;
  const { scaled: _scaled, ...rest } = record;
  return { ...world, models: new Map(world.models).set(model, rest) };
}

/** Only for a node that does not come back: what it ran counts as gone from here on. */
function forgetNode(world: World, name: string, now: EpochMs): World {
  if (world.nodes.get(name)?.connected === true || !world.knownNodes.has(name)) return world;
  const knownNodes = withoutMember(world.knownNodes, name);
  const nodes = withoutEntry(world.nodes, name);
  const kept = [...world.replicas].filter(([, replica]) =>
    !replica.shards.every((shard) => shard.node === name)
  ).map(([id, replica]) => [id, withoutNode(replica, name, now)] as const);
  const without = decided(decided(world, "nodes", name, undefined), "labels", name, undefined);
  const models = new Map(
    [...world.models].map(([model, record]) => [model, withoutFailures(record, name)]),
  );
  return { ...without, knownNodes, nodes, models, replicas: new Map(kept) };
}

/** What failed for good there is forgotten with the node: when it is back, it is tried. */
function withoutFailures(record: ModelRecord, node: string): ModelRecord {
  const blocked = record.blocked.filter((each) => each.node !== node);
  return blocked.length === record.blocked.length ? record : { ...record, blocked };
}

function withoutNode(replica: Replica, name: string, now: EpochMs): Replica {
  if (!replica.shards.some((shard) => shard.node === name)) return replica;
  const shards = replica.shards.map((shard) =>
    shard.node === name ? { ...shard, status: goneStatus(shard, NODE_FORGOTTEN, now) } : shard
  );
  return { ...replica, shards };
}
