/** What operators see, as the wire says it. */
import { create } from "@bufbuild/protobuf";
import {
  type AuditRecord,
  AuditRecordSchema,
  type DecisionView as WireDecisionView,
  DecisionViewSchema,
  type ExplainResponse,
  ExplainResponseSchema,
  type ModelView as WireModelView,
  ModelViewSchema,
  type NodeView as WireNodeView,
  NodeViewSchema,
  type ReplicaView as WireReplicaView,
  ReplicaViewSchema,
  type RouterView as WireRouterView,
  RouterViewSchema,
  type ShardView as WireShardView,
  ShardViewSchema,
} from "@heddle/proto/gen/admin";
import { encodeAttachedState } from "@heddle/proto/attached_state";
import { AttachedViewSchema } from "@heddle/proto/gen/attach";
import { HcaRefSchema, InventorySchema } from "@heddle/proto/gen/types";
import { encodeNodeState } from "@heddle/proto/node_state";
import { encodeReplicaState } from "@heddle/proto/replica_state";
import { encodeRevision } from "@heddle/proto/revision";
import { encodeShardState } from "@heddle/proto/shard_state";
import type { Audit } from "../../core/store_record.ts";
import type {
  AttachedView,
  DecisionView,
  ExplainView,
  ModelView,
  NodeView,
  ReplicaView,
  RouterView,
  ShardView,
} from "../../core/views.ts";
import { encodePlain } from "../encode_plain.ts";

export function encodeNode(view: NodeView): WireNodeView {
  const { inventory, lastSeenMs, attached, ...same } = view;
  return create(NodeViewSchema, {
    ...same,
    state: encodeNodeState(view.state),
    usedGpus: [...view.usedGpus],
    replicaIds: [...view.replicaIds],
    operatorLabels: { ...view.operatorLabels },
    ...(inventory === undefined ? {} : { inventory: encodePlain(InventorySchema, inventory) }),
    ...(lastSeenMs === undefined ? {} : { lastSeenMs: wholeMs(lastSeenMs) }),
    ...(attached === undefined ? {} : { attached: encodeAttached(attached) }),
  });
}

export function encodeModel(view: ModelView): WireModelView {
  const { backoffMs, ...same } = view;
  return create(ModelViewSchema, {
    ...same,
    aliases: [...view.aliases],
    unsafeProfiles: [...view.unsafeProfiles],
    ...(backoffMs === undefined ? {} : { backoffMs: Math.ceil(backoffMs) }),
  });
}

export function encodeReplica({ attached, ...view }: ReplicaView): WireReplicaView {
  return create(ReplicaViewSchema, {
    ...view,
    ...(attached === undefined ? {} : { attached: encodeAttached(attached) }),
    state: encodeReplicaState(view.state),
    shards: view.shards.map(encodeShard),
    inStateMs: wholeMs(view.inStateMs),
  });
}

export function encodeRouter(view: RouterView): WireRouterView {
  return create(RouterViewSchema, {
    ...view,
    applied: encodeRevision(view.applied),
    lastReportMs: wholeMs(view.lastReportMs),
  });
}

export function encodeExplain(view: ExplainView): ExplainResponse {
  const { lastAttemptMs, ...same } = view;
  return create(ExplainResponseSchema, {
    ...same,
    placements: view.placements.map((placement) => ({
      ...placement,
      nodes: [...placement.nodes],
      scores: { ...placement.scores },
      notes: [...placement.notes],
    })),
    rejections: [...view.rejections],
    ...(lastAttemptMs === undefined ? {} : { lastAttemptMs: wholeMs(lastAttemptMs) }),
  });
}

export function encodeDecision({ decidedMs, ...same }: DecisionView): WireDecisionView {
  return create(DecisionViewSchema, {
    ...same,
    ...(decidedMs === undefined ? {} : { decidedMs: wholeMs(decidedMs) }),
  });
}

export function encodeAudit({ kind: _, at, ...record }: Audit): AuditRecord {
  return create(AuditRecordSchema, { atMs: wholeMs(at), ...record });
}

function encodeAttached({ state, leaseLeftMs, ...same }: AttachedView) {
  return encodePlain(AttachedViewSchema, {
    ...same,
    state: encodeAttachedState(state),
    leaseLeftMs: wholeMs(leaseLeftMs),
  });
}

function encodeShard(view: ShardView): WireShardView {
  return create(ShardViewSchema, {
    ...view,
    state: encodeShardState(view.state),
    gpus: [...view.gpus],
    hcas: view.hcas.map((hca) => encodePlain(HcaRefSchema, hca)),
    logTail: [...view.logTail],
  });
}

// Control's clock has fractions of a millisecond, the wire has not.
function wholeMs(ms: number): bigint {
  return BigInt(Math.max(0, Math.round(ms)));
}
