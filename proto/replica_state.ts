/** The states of a replica as words. A number that this version does not know reads as `unknown`. */
import { ReplicaState as WireReplicaState } from "./gen/heddle/v1/types_pb.ts";

const WORDS = {
  [WireReplicaState.PLACING]: "placing",
  [WireReplicaState.STARTING]: "starting",
  [WireReplicaState.READY]: "ready",
  [WireReplicaState.DRAINING]: "draining",
  [WireReplicaState.STOPPING]: "stopping",
  [WireReplicaState.STOPPED]: "stopped",
  [WireReplicaState.FAILED]: "failed",
} as const;

/** Known states, and `unknown` for what a newer peer says: neither routed to nor stopped, but shown. */
export type ReplicaState = (typeof WORDS)[keyof typeof WORDS] | "unknown";

const BY_NUMBER: ReadonlyMap<number, ReplicaState> = new Map(
  Object.entries(WORDS).map(([number, word]) => [Number(number), word]),
);
const BY_WORD: ReadonlyMap<ReplicaState, WireReplicaState> = new Map(
  Object.entries(WORDS).map(([number, word]) => [word, Number(number)]),
);

export function decodeReplicaState(wire: number): ReplicaState {
  return BY_NUMBER.get(wire) ?? "unknown";
}

/** `unknown` is never sent as a fact of ours: it becomes UNSPECIFIED. */
export function encodeReplicaState(state: ReplicaState): WireReplicaState {
  return BY_WORD.get(state) ?? WireReplicaState.UNSPECIFIED;
}
