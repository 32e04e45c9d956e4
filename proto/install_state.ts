/** How far a node is with an engine, as words. A number that this version does not know reads as `unknown`. */
import { InstallState as WireInstallState } from "./gen/heddle/v1/engines_pb.ts";

const WORDS = {
  [WireInstallState.WAITING]: "waiting",
  [WireInstallState.INSTALLING]: "installing",
  [WireInstallState.INSTALLED]: "installed",
  [WireInstallState.FAILED]: "failed",
} as const;

/** Known states, and `unknown` for what a newer peer says: shown, and not counted on. */
export type InstallState = (typeof WORDS)[keyof typeof WORDS] | "unknown";

const BY_NUMBER: ReadonlyMap<number, InstallState> = new Map(
  Object.entries(WORDS).map(([number, word]) => [Number(number), word]),
);
const BY_WORD: ReadonlyMap<InstallState, WireInstallState> = new Map(
  Object.entries(WORDS).map(([number, word]) => [word, Number(number)]),
);

export function decodeInstallState(wire: number): InstallState {
  return BY_NUMBER.get(wire) ?? "unknown";
}

/** `unknown` is never sent as a fact of ours: it becomes UNSPECIFIED. */
export function encodeInstallState(state: InstallState): WireInstallState {
  return BY_WORD.get(state) ?? WireInstallState.UNSPECIFIED;
}
