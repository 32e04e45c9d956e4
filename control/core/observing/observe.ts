/**
 * Folds what happened into the world. Facts only: what to do about them is for `reconcile`. Anything
 * about a node, shard or router that the world does not know is ignored, never an error: it is late.
 */
import { observeClaim, observeProof } from "../attach/observe.ts";
import { withSource } from "../facts/source_hint.ts";
import type { Event } from "../event.ts";
import type { EpochMs } from "../ids.ts";
import { withEntry } from "./layered_map.ts";
import type { World } from "../world.ts";
import { observeCatalog } from "./catalog.ts";
import { observeCommandResult } from "./command_result.ts";
import { observeHeartbeats } from "./heartbeat.ts";
import { observeOperator } from "./operator.ts";
import { observeRegistered } from "./registered.ts";
import { observeReport, observeWake } from "./router.ts";
import { observeShardStatus } from "./shard_status.ts";

/** The world after `event`; the same object when it changed nothing. Pure. */
export function observe(world: World, event: Event, now: EpochMs): World {
  switch (event.kind) {
    case "registered":
      return observeRegistered(world, event, now);
    case "heartbeat":
      return observeHeartbeats(world, [{ ...event, at: now }]);
    case "shard_status":
      return observeShardStatus(world, event, now);
    case "command_result":
      return observeCommandResult(world, event, now);
    case "stream_closed":
      return closeStream(world, event.node);
    case "source_inspected":
      return withSource(world, event.source, event.seen);
    case "attached_claimed":
      return observeClaim(world, event, now);
    case "attached_proved":
      return observeProof(world, event, now);
    case "catalog_applied":
      return observeCatalog(world, event.catalog, now);
    case "router_report":
      return observeReport(world, event, now);
    case "router_gone":
      return removeRouter(world, event.router);
    case "wake":
      return observeWake(world, event.model, now);
    case "cordon":
    case "drain":
    case "uncordon":
    case "label":
    case "forget_node":
    case "pause":
    case "resume":
    case "scale":
    case "clear_scale":
    case "retry":
    case "restart":
    case "stop":
    case "stop_at_once":
    case "strike":
      return observeOperator(world, event, now);
    case "tick":
      return world;
  }
}

function closeStream(world: World, name: string): World {
  const node = world.nodes.get(name);
  if (node === undefined || !node.connected) return world;
  return { ...world, nodes: withEntry(world.nodes, name, { ...node, connected: false }) };
}

function removeRouter(world: World, name: string): World {
  if (!world.routers.has(name)) return world;
  const routers = new Map(world.routers);
  routers.delete(name);
  return { ...world, routers };
}
