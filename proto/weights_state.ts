/** How far weights are on a node, as words. A number that this version does not know reads as `unknown`. */
import { WeightsState as WireWeightsState } from "./gen/heddle/v1/weights_pb.ts";

const WORDS = {
  [WireWeightsState.FETCHING]: "fetching",
  [WireWeightsState.READY]: "ready",
  [WireWeightsState.FAILED]: "failed",
} as const;

/** Known states, and `unknown` for what a newer peer says: shown, and not counted on. */
export type WeightsState = (typeof WORDS)[keyof typeof WORDS] | "unknown";

const BY_NUMBER: ReadonlyMap<number, WeightsState> = new Map(
  Object.entries(WORDS).map(([number, word]) => [Number(number), word]),
);
const BY_WORD: ReadonlyMap<WeightsState, WireWeightsState> = new Map(
  Object.entries(WORDS).map(([number, word]) => [word, Number(number)]),
);

export function decodeWeightsState(wire: number): WeightsState {
  return BY_NUMBER.get(wire) ?? "unknown";
}

/** `unknown` is never sent as a fact of ours: it becomes UNSPECIFIED. */
export function encodeWeightsState(state: WeightsState): WireWeightsState {
  return BY_WORD.get(state) ?? WireWeightsState.UNSPECIFIED;
}
