/** What a node is now. Derived from its silence and from operators' decisions, never stored. */
import type { NodeState } from "@heddle/proto/node_state";
import type { EpochMs, NodeId } from "../ids.ts";
import type { World } from "../world.ts";

export type Reach = "reachable" | "unreachable" | "lost";

/** Since the node's last message. One that this control never heard from is silent since the start. */
function silentMs(world: World, node: NodeId, now: EpochMs): number {
  return now - (world.nodes.get(node)?.lastSeenAt ?? world.startedAt);
}

/** Two stages of silence, in every state: an operator's decision does not keep a node alive. */
export function reach(world: World, node: NodeId, now: EpochMs): Reach {
  const silent = silentMs(world, node, now);
  if (silent >= world.timings.lostMs) return "lost";
  if (silent >= world.timings.unreachableMs || !world.nodes.has(node)) return "unreachable";
  return "reachable";
}

/** `busy`: some shard still holds something there. */
export function nodeState(world: World, node: NodeId, busy: boolean, now: EpochMs): NodeState {
  const reached = reach(world, node, now);
  if (reached !== "reachable") return reached;
  const decision = world.decisions.nodes.get(node);
  if (decision === undefined) return "ready";
  if (decision.kind === "cordon") return "cordoned";
  return busy ? "draining" : "drained";
}

/** When the node's state changes by silence alone; absent when it is lost already. */
export function nextSilence(world: World, node: NodeId, now: EpochMs): EpochMs | undefined {
  const seenAt = world.nodes.get(node)?.lastSeenAt ?? world.startedAt;
  const { unreachableMs, lostMs } = world.timings;
  if (now < seenAt + unreachableMs) return seenAt + unreachableMs;
  return now < seenAt + lostMs ? seenAt + lostMs : undefined;
}
