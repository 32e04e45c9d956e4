/**
 * What operators see of the world: plain shapes that mirror admin.proto, with words for states. The
 * projections are in views/, a noun a file; the edge encodes them.
 */
import type { Plain } from "@heddle/proto/plain";
import type { AttachedState } from "@heddle/proto/attached_state";
import type { AttachedView as WireAttachedView } from "@heddle/proto/gen/attach";
import type { HcaRef, Inventory } from "@heddle/proto/gen/types";
import type { NodeState } from "@heddle/proto/node_state";
import type { ReplicaState } from "@heddle/proto/replica_state";
import type { Revision } from "@heddle/proto/revision";
import type { ShardState } from "@heddle/proto/shard_state";
import type { NodeId, ReplicaId, RouterId, ShardId } from "./ids.ts";
import type { ReplicaDecision } from "./world.ts";

export interface NodeView {
  readonly name: NodeId;
  readonly state: NodeState;
  readonly address: string;
  readonly agentVersion: string;
  /** Absent for a node that has not registered with this control. */
  readonly inventory?: Plain<Inventory>;
  readonly usedGpus: readonly number[];
  readonly replicaIds: readonly ReplicaId[];
  /** Since its last message; absent when this control never heard from it. */
  readonly lastSeenMs?: number;
  readonly cordoned: boolean;
  readonly draining: boolean;
  readonly decidedBy: string;
  readonly decisionReason: string;
  /** Those of its labels that operators put there. */
  readonly operatorLabels: Readonly<Record<string, string>>;
  readonly attached?: AttachedView;
}

/** Of an engine that something else started, or of a node of one. */
export type AttachedView =
  & Omit<Plain<WireAttachedView>, "state" | "leaseLeftMs">
  & { readonly state: AttachedState; readonly leaseLeftMs: number };

export interface ModelView {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly minReplicas: number;
  readonly maxReplicas: number;
  readonly desiredReplicas: number;
  readonly readyReplicas: number;
  readonly startingReplicas: number;
  readonly drainingReplicas: number;
  /** Attached engines that routers have; they count neither as wanted nor as ready. */
  readonly attachedEngines: number;
  readonly failedStarts: number;
  /** Until the next start; absent when none waits. */
  readonly backoffMs?: number;
  /** Why it is not as it should be, in words; empty when it is. */
  readonly reason: string;
  readonly unsafeProfiles: readonly string[];
  /** Why demand, or an operator, has set the number that is wanted; empty when it is the minimum. */
  readonly scaleReason: string;
  /** Held at so many replicas by an operator; absent when not. */
  readonly heldReplicas?: number;
  readonly paused: boolean;
}

/** What an operator decided and nobody has taken back, also about what is not there any more. */
export interface DecisionView {
  readonly kind: "cordon" | "drain" | "pause" | "scale" | "labels" | ReplicaDecision["kind"];
  /** A node, a model or a replica. */
  readonly subject: string;
  /** Replicas for a scale, labels as "a=b, c=d"; else empty. */
  readonly value: string;
  /** Empty for labels: the audit trail knows. */
  readonly by: string;
  readonly reason: string;
  /** Since it was decided; absent for labels. */
  readonly decidedMs?: number;
  /** The node or model is not known to control or not in the catalog. */
  readonly orphaned: boolean;
}

export interface ReplicaView {
  readonly replicaId: ReplicaId;
  readonly model: string;
  readonly profile: string;
  readonly state: ReplicaState;
  readonly reason: string;
  readonly address: string;
  readonly shards: readonly ShardView[];
  readonly inStateMs: number;
  /** Sum over leased routers; absent when none has reported. */
  readonly inFlight?: number;
  readonly engine: string;
  readonly fabric: string;
  readonly attached?: AttachedView;
}

export interface ShardView {
  readonly shardId: ShardId;
  readonly node: NodeId;
  readonly rank: number;
  readonly state: ShardState;
  readonly gpus: readonly number[];
  readonly hcas: readonly Plain<HcaRef>[];
  readonly pid?: number;
  readonly reason: string;
  readonly message: string;
  readonly logTail: readonly string[];
  readonly progress: string;
}

export interface RouterView {
  readonly name: RouterId;
  readonly version: string;
  readonly applied: Revision;
  readonly current: boolean;
  readonly leased: boolean;
  readonly lastReportMs: number;
  readonly inFlight: number;
  readonly waiting: number;
}

export interface ExplainView {
  readonly model: string;
  /** One line, e.g. "0/12 nodes fit: 7 gpus_free, 3 fabric_short, 2 unreachable". */
  readonly summary: string;
  readonly placements: readonly PlacementView[];
  readonly rejections: readonly RejectionView[];
  /** Since placement was last tried; absent when never. */
  readonly lastAttemptMs?: number;
  /** As in ModelView. */
  readonly desiredReplicas: number;
  readonly scaleReason: string;
}

export interface PlacementView {
  readonly replicaId: ReplicaId;
  readonly profile: string;
  readonly nodes: readonly NodeId[];
  readonly scores: Readonly<Record<string, number>>;
  /** What an operator should know of it. */
  readonly notes: readonly string[];
}

export interface RejectionView {
  readonly profile: string;
  readonly node: NodeId;
  readonly reason: string;
  readonly detail: string;
}
