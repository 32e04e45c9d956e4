/** Why a node is not used for a replica: a closed reason, with numbers, in words to act on. */
import type { NodeId } from "../ids.ts";

export type RejectReason =
  | "not_registered"
  | "unreachable"
  | "lost"
  | "cordoned"
  | "draining"
  | "node_selector"
  | "gpu_class"
  | "engine_missing"
  | "engine_version"
  | "weights_missing"
  | "disk_short"
  | "gpus_free"
  | "memory_short"
  /** It failed there for good, and nothing was mended since. */
  | "failed_here"
  | "ports_free"
  | "fabric_short"
  | "hca_count"
  /** It fits, but others were better. */
  | "outscored";

export interface Rejection {
  readonly node: NodeId;
  readonly reason: RejectReason;
  /** The two numbers, when the reason has them. */
  readonly want?: number;
  readonly have?: number;
  /** For example "want 8 have 5". */
  readonly detail: string;
}

/** A rejection whose detail begins with its numbers. */
export function short(
  node: NodeId,
  reason: RejectReason,
  numbers: { readonly want: number; readonly have: number },
  words: string,
): Rejection {
  const { want, have } = numbers;
  const detail = `want ${want} have ${have}`;
  return { node, reason, want, have, detail: words === "" ? detail : `${detail}: ${words}` };
}
