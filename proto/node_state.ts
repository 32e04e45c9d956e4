/** The states of a node as words. A number that this version does not know reads as `unknown`. */
import { NodeState as WireNodeState } from "./gen/heddle/v1/types_pb.ts";

const WORDS = {
  [WireNodeState.READY]: "ready",
  [WireNodeState.CORDONED]: "cordoned",
  [WireNodeState.DRAINING]: "draining",
  [WireNodeState.DRAINED]: "drained",
  [WireNodeState.UNREACHABLE]: "unreachable",
  [WireNodeState.LOST]: "lost",
} as const;

/** Known states, and `unknown` for what a newer peer says: neither routed to nor stopped, but shown. */
export type NodeState = (typeof WORDS)[keyof typeof WORDS] | "unknown";

const BY_NUMBER: ReadonlyMap<number, NodeState> = new Map(
  Object.entries(WORDS).map(([number, word]) => [Number(number), word]),
);
const BY_WORD: ReadonlyMap<NodeState, WireNodeState> = new Map(
  Object.entries(WORDS).map(([number, word]) => [word, Number(number)]),
);

export function decodeNodeState(wire: number): NodeState {
  return BY_NUMBER.get(wire) ?? "unknown";
}

/** `unknown` is never sent as a fact of ours: it becomes UNSPECIFIED. */
export function encodeNodeState(state: NodeState): WireNodeState {
  return BY_WORD.get(state) ?? WireNodeState.UNSPECIFIED;
}
