/** The states of a shard as words. A number that this version does not know reads as `unknown`. */
import { ShardState as WireShardState } from "./gen/heddle/v1/types_pb.ts";

const WORDS = {
  [WireShardState.PREPARING]: "preparing",
  [WireShardState.STARTING]: "starting",
  [WireShardState.LOADING]: "loading",
  [WireShardState.READY]: "ready",
  [WireShardState.DEGRADED]: "degraded",
  [WireShardState.DRAINING]: "draining",
  [WireShardState.STOPPING]: "stopping",
  [WireShardState.STOPPED]: "stopped",
  [WireShardState.FAILED]: "failed",
} as const;

/** Known states, and `unknown` for what a newer peer says: neither routed to nor stopped, but shown. */
export type ShardState = (typeof WORDS)[keyof typeof WORDS] | "unknown";

const BY_NUMBER: ReadonlyMap<number, ShardState> = new Map(
  Object.entries(WORDS).map(([number, word]) => [Number(number), word]),
);
const BY_WORD: ReadonlyMap<ShardState, WireShardState> = new Map(
  Object.entries(WORDS).map(([number, word]) => [word, Number(number)]),
);

export function decodeShardState(wire: number): ShardState {
  return BY_NUMBER.get(wire) ?? "unknown";
}

/** `unknown` is never sent as a fact of ours: it becomes UNSPECIFIED. */
export function encodeShardState(state: ShardState): WireShardState {
  return BY_WORD.get(state) ?? WireShardState.UNSPECIFIED;
}
