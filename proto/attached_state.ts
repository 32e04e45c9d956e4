/** The states of an attached engine as words. A number that this version does not know is `unknown`. */
import { AttachedState as WireAttachedState } from "./gen/heddle/v1/attach_pb.ts";

const WORDS = {
  [WireAttachedState.ASSEMBLING]: "assembling",
  [WireAttachedState.SERVING]: "serving",
  [WireAttachedState.DEGRADED]: "degraded",
  [WireAttachedState.DRAINING]: "draining",
  [WireAttachedState.LOST]: "lost",
} as const;

/** What its agent may say of an engine. The others are control's to say. */
export const TOLD_STATES = ["assembling", "serving", "degraded"] as const;
export type ToldState = (typeof TOLD_STATES)[number];

/** Known states, and `unknown` for what a newer peer says: shown, and not routed to. */
export type AttachedState = (typeof WORDS)[keyof typeof WORDS] | "unknown";

const BY_NUMBER: ReadonlyMap<number, AttachedState> = new Map(
  Object.entries(WORDS).map(([number, word]) => [Number(number), word]),
);
const BY_WORD: ReadonlyMap<AttachedState, WireAttachedState> = new Map(
  Object.entries(WORDS).map(([number, word]) => [word, Number(number)]),
);

export function decodeAttachedState(wire: number): AttachedState {
  return BY_NUMBER.get(wire) ?? "unknown";
}

/** `unknown` is never sent as a fact of ours: it becomes UNSPECIFIED. */
export function encodeAttachedState(state: AttachedState): WireAttachedState {
  return BY_WORD.get(state) ?? WireAttachedState.UNSPECIFIED;
}
