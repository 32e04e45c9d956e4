/** What must survive a restart of control, as the difference that an event made. */
import type { NodeId } from "./ids.ts";
import type { CatalogState, Decision, NodeDecision, ScaleDecision } from "./world.ts";

/**
 * One stored fact. The store keeps the newest of each kind and subject; an absent `decision` or
 * `labels` removes it. Audit records are only ever added.
 */
export type StoreRecord =
  | { readonly kind: "term"; readonly term: number }
  | { readonly kind: "known_node"; readonly node: NodeId; readonly known: boolean }
  | { readonly kind: "catalog"; readonly text: string; readonly revision: CatalogState["revision"] }
  | { readonly kind: "node_decision"; readonly node: NodeId; readonly decision?: NodeDecision }
  | { readonly kind: "paused"; readonly model: string; readonly decision?: Decision }
  | { readonly kind: "scale"; readonly model: string; readonly decision?: ScaleDecision }
  | {
    readonly kind: "labels";
    readonly node: NodeId;
    readonly labels?: Readonly<Record<string, string>>;
  }
  | Audit;

/** Who decided what, and when. */
export interface Audit {
  readonly kind: "audit";
  readonly at: number;
  readonly by: string;
  /** The operator event's kind, e.g. "cordon". */
  readonly action: string;
  /** The node or model it is about. */
  readonly subject: string;
  readonly reason: string;
}
