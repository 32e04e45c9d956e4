/**
 * The world while a pass decides: the same values in maps of its own, changed by actions only. One
 * copy of the maps per pass, whatever the number of actions.
 */
import type { Revision } from "@heddle/proto/revision";
import type { Action, ScaleStep } from "../plan.ts";
import type { ModelRecord, Replica, World } from "../world.ts";
import type { EpochMs, ReplicaId } from "../ids.ts";
import { backoffMs } from "@heddle/common/backoff";
import { findModel } from "../catalog.ts";
import { profileOf } from "../catalog/fingerprint.ts";
import { blockedBy, stillBlocked } from "../facts/circumstance.ts";

export interface Draft {
  /** The world the pass began with; nodes, catalog, routers and decisions are read from it. */
  readonly before: World;
  readonly replicas: Map<ReplicaId, Replica>;
  readonly models: Map<string, ModelRecord>;
  sequence: number;
}

export const CLEAN_RECORD: ModelRecord = { failedStarts: 0, blocked: [] };

export function draftOf(world: World): Draft {
  return {
    before: world,
    replicas: new Map(world.replicas),
    models: new Map(world.models),
    sequence: world.sequence,
  };
}

export function nextRevision(draft: Draft): Revision {
  return { term: draft.before.term, sequence: ++draft.sequence };
}

/** Does to the draft what an action says. The one place where decisions become state. */
export function apply(draft: Draft, action: Action, now: EpochMs): void {
  if (action.kind === "place_replica") {
    draft.replicas.set(action.replica, {
      id: action.replica,
      model: action.model,
      profile: action.profile,
      fingerprint: action.fingerprint,
      shardCount: action.shards.length,
      shards: action.shards.map(({ node, spec }) => ({
        id: spec.shardId,
        node,
        rank: spec.rank,
        spec,
      })),
      createdAt: now,
      readyDeadline: action.readyDeadline,
      adopted: false,
      scores: action.scores,
      notes: action.notes,
    });
    return;
  }
  const replica = draft.replicas.get(action.replica);
  if (replica === undefined) return;
  if (action.kind === "forget_replica") {
    draft.replicas.delete(action.replica);
    return;
  }
  draft.replicas.set(action.replica, changed(draft, replica, action, now));
  if (action.kind === "fail_replica") countFailure(draft, replica, action, now);
}

/** A step in the number of replicas becomes what is wanted. */
export function applyStep(draft: Draft, { model, count, reason }: ScaleStep, now: EpochMs): void {
  const record = draft.models.get(model) ?? CLEAN_RECORD;
  draft.models.set(model, { ...record, scaled: { count, reason, at: now } });
}

function changed(
  draft: Draft,
  replica: Replica,
  action: Exclude<Action, { kind: "place_replica" | "forget_replica" }>,
  now: EpochMs,
): Replica {
  switch (action.kind) {
    case "retire_replica":
      return { ...replica, retiring: { reason: action.reason, since: now } };
    case "keep_replica": {
      const { retiring: _retiring, draining: _draining, ...kept } = replica;
      return kept;
    }
    case "drain_replica":
      return {
        ...replica,
        draining: { reason: action.reason, since: now, deadline: action.deadline },
      };
    case "stop_replica":
      return { ...replica, stopping: { reason: action.reason, since: now } };
    case "fail_replica":
      return {
        ...replica,
        failure: {
          reason: action.reason,
          message: action.message,
          at: now,
          permanent: action.permanent,
          ...(action.shard === undefined ? {} : { shard: action.shard }),
          logTail: action.logTail,
        },
      };
    case "start_shard":
    case "stop_shard":
      return withCommand(draft, replica, action, now);
  }
}

function withCommand(
  draft: Draft,
  replica: Replica,
  action: Extract<Action, { kind: "start_shard" | "stop_shard" }>,
  now: EpochMs,
): Replica {
  return {
    ...replica,
    shards: replica.shards.map((shard) =>
      shard.id === action.shard
        ? {
          ...shard,
          command: {
            kind: action.kind === "start_shard" ? "start" : "stop",
            revision: action.revision,
            sentAt: now,
            deadline: now + draft.before.timings.commandMs,
          },
        }
        : shard
    ),
  };
}

/** Backoff belongs to the model: the replica is about to go. */
function countFailure(
  draft: Draft,
  replica: Replica,
  action: Extract<Action, { kind: "fail_replica" }>,
  now: EpochMs,
): void {
  const record = draft.models.get(replica.model) ?? CLEAN_RECORD;
  const failedStarts = record.failedStarts + (action.counts ? 1 : 0);
  const failure = draft.replicas.get(replica.id)?.failure;
  const next: ModelRecord = {
    ...record,
    failedStarts,
    ...(failure === undefined ? {} : { lastFailure: failure.message }),
    ...(action.counts
      ? {
        backoffUntil: now + backoffMs(replica.model, failedStarts, draft.before.timings.backoff),
      }
      : {}),
    blocked: action.permanent ? blockedWith(draft, replica, record, action) : record.blocked,
  };
  draft.models.set(replica.model, next);
}

function blockedWith(
  draft: Draft,
  replica: Replica,
  record: ModelRecord,
  { message, shard: failed }: Extract<Action, { kind: "fail_replica" }>,
): ModelRecord["blocked"] {
  const model = findModel(draft.before.catalog.catalog, replica.model);
  const profile = model === undefined ? undefined : profileOf(model, replica.fingerprint);
  if (model === undefined || profile === undefined) return record.blocked;
  const shard = replica.shards.find(({ id }) => id === failed);
  const reason = shard?.status?.reason;
  const cause = shard === undefined || reason === undefined
    ? undefined
    : { reason, node: shard.node };
  const blocked = blockedBy(draft.before, { model, profile, cause, message });
  return [
    ...record.blocked.filter((each) =>
      each.profile !== profile.name ||
      (each.node !== blocked.node && stillBlocked(draft.before, model, each))
    ),
    blocked,
  ];
}
