/** Which events can change a decision. The others are folded in and looked at when something else is. */
import type { Plain } from "@heddle/proto/plain";
import type { Heartbeat } from "@heddle/proto/gen/agent";
import type { Inventory } from "@heddle/proto/gen/types";
import { claimMatters } from "../attach/observe.ts";
import { SAMPLE_MS, scales } from "../facts/demand.ts";
import { reach } from "../facts/node_state.ts";
import { leader } from "../facts/shard_facts.ts";
import type { Event, HeartbeatSeen } from "../event.ts";
import type { EpochMs, NodeId } from "../ids.ts";
import type { World } from "../world.ts";
import { withLive } from "./heartbeat.ts";

/** Whether a pass is due because of `event`. `world` is the one before it. */
export function matters(world: World, event: Event, now: EpochMs): boolean {
  switch (event.kind) {
    case "heartbeat":
      return heartbeatMatters(world, event, now);
    case "router_report":
      // Reports come every 2 s from each router; drains wait for them, and scaling looks now and then.
      return drainingNodes(world).size > 0 || newSample(world, now);
    case "attached_claimed":
      return claimMatters(world, event, now);
    default:
      return true;
  }
}

/** The node was silent, what it has changed, or a drain waits for its numbers. */
function heartbeatMatters(world: World, event: HeartbeatSeen, now: EpochMs): boolean {
  const { heartbeat, node: name } = event;
  if (reach(world, name, now) !== "reachable") return true;
  if (heartbeat.enginesPresent || heartbeat.modelFilesPresent) return true;
  const node = world.nodes.get(name);
  if (heartbeat.weights !== undefined && weightsChanged(node?.inventory, heartbeat)) return true;
  if (heartbeat.hardwarePresent && node !== undefined) {
    const after = withLive(node.inventory, heartbeat);
    if (usableParts(node.inventory) !== usableParts(after)) return true;
  }
  const mended = heartbeat.hardwarePresent || heartbeat.modelDirs.length > 0;
  if (mended && failedThere(world, name)) return true;
  return heartbeat.loads.length > 0 && drainingNodes(world).has(name);
}

/** What the node says of its problems and its disk may be what a start there waits for. */
function failedThere({ models }: World, name: NodeId): boolean {
  for (const { blocked } of models.values()) {
    if (blocked.some(({ node }) => node === name)) return true;
  }
  return false;
}

/** Some are whole now, or gone, or failed; how far others have come decides nothing. */
function weightsChanged(
  before: Plain<Inventory> | undefined,
  after: Plain<Heartbeat>,
): boolean {
  const text = (list: Plain<Heartbeat>["weights"]) =>
    JSON.stringify(list?.weights.map(({ want, state, folder }) => [want, state, folder]) ?? []);
  return text(before?.weights) !== text(after.weights);
}

/** A sample of demand was completed, for scaling to look at. */
function newSample(world: World, now: EpochMs): boolean {
  return world.catalog.catalog.models.some((model) => {
    if (!scales(model)) return false;
    const last = world.models.get(model.name)?.demand?.at(-1);
    return last === undefined || now >= last.from + SAMPLE_MS;
  });
}

/** Nodes with the leader of a replica that drains, of each list of replicas that was asked about. */
const DRAINING = new WeakMap<World["replicas"], ReadonlySet<NodeId>>();

/** Every heartbeat of a fleet asks, and the list seldom changes between two. */
function drainingNodes({ replicas }: World): ReadonlySet<NodeId> {
  const known = DRAINING.get(replicas);
  if (known !== undefined) return known;
  const nodes = new Set<NodeId>();
  for (const replica of replicas.values()) {
    if (replica.draining === undefined || replica.stopping !== undefined) continue;
    nodes.add(leader(replica)?.node ?? "");
  }
  DRAINING.set(replicas, nodes);
  return nodes;
}

/** What placement reads of a node's hardware, as text to compare. */
function usableParts(inventory: Plain<Inventory>): string {
  return JSON.stringify([
    inventory.gpus.map((gpu) => [
      gpu.uuid,
      gpu.gpuClass,
      gpu.memoryTotalMib,
      gpu.nvlinkClique,
      gpu.problems.map((problem) => problem.reason),
    ]),
    inventory.hcas.map((hca) => [hca.name, hca.port, hca.fabric, hca.active, hca.problems.length]),
    inventory.fabrics.map((fabric) => [fabric.name, fabric.degraded]),
  ]);
}
