/** Whether control knows enough to place and to take things away. */
import type { EpochMs, NodeId } from "../ids.ts";
import type { World } from "../world.ts";

/**
 * All known nodes have registered with this control, or it has waited long enough. Once true it
 * stays true: a node becomes known by registering.
 */
export function settled(world: World, now: EpochMs): boolean {
  return now >= settleDeadline(world) || unheard(world).length === 0;
}

export function settleDeadline(world: World): EpochMs {
  return world.startedAt + world.timings.settleMs;
}

/** Known nodes that have not registered with this control, sorted. */
export function unheard(world: World): readonly NodeId[] {
  return [...world.knownNodes].filter((node) => !world.nodes.has(node)).sort();
}
