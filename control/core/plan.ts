/**
 * What control decided in one pass. An action leaves its executor no choice; what is not done is
 * said with its reason.
 */
import type { Plain } from "@heddle/proto/plain";
import type { ShardSpec } from "@heddle/proto/gen/types";
import type { Revision } from "@heddle/proto/revision";
import type { EpochMs, NodeId, ReplicaId, ShardId } from "./ids.ts";
import type { FailureReason, RetireReason, StopReason } from "./world.ts";

/** Commands go to agents; decisions only change the world. All are recorded before any is sent. */
export type Action = ShardCommand | Decided;

export type ShardCommand = StartShard | StopShard;

/** The agent starts the shard, or goes on when it has this revision already. */
export interface StartShard {
  readonly kind: "start_shard";
  readonly shard: ShardId;
  readonly replica: ReplicaId;
  readonly node: NodeId;
  readonly spec: Plain<ShardSpec>;
  readonly revision: Revision;
}

/** The agent stops the shard and says `stopped` once its GPUs are free. */
export interface StopShard {
  readonly kind: "stop_shard";
  readonly shard: ShardId;
  readonly replica: ReplicaId;
  readonly node: NodeId;
  readonly reason: StopReason;
  /** How long the engine may finish what it has; 0 means at once. */
  readonly graceMs: number;
  readonly revision: Revision;
}

export type Decided =
  | PlaceReplica
  | RetireReplica
  | DrainReplica
  | StopReplica
  | FailReplica
  | KeepReplica
  | ForgetReplica;

/** A new replica, whole: every shard with its node, GPUs, HCAs and ports. */
export interface PlaceReplica {
  readonly kind: "place_replica";
  readonly replica: ReplicaId;
  readonly model: string;
  readonly profile: string;
  readonly fingerprint: string;
  /** By rank. */
  readonly shards: readonly { readonly node: NodeId; readonly spec: Plain<ShardSpec> }[];
  readonly scores: Readonly<Record<string, number>>;
  readonly notes: readonly string[];
  readonly readyDeadline: EpochMs;
  readonly revision: Revision;
}

/** It should go once its replacement is ready, or when waiting for one has no point any more. */
export interface RetireReplica {
  readonly kind: "retire_replica";
  readonly replica: ReplicaId;
  readonly reason: RetireReason;
}

/** It stays after all: what made it retire or drain holds no more. */
export interface KeepReplica {
  readonly kind: "keep_replica";
  readonly replica: ReplicaId;
}

/** No new requests from here on. */
export interface DrainReplica {
  readonly kind: "drain_replica";
  readonly replica: ReplicaId;
  readonly reason: RetireReason;
  readonly deadline: EpochMs;
  /** Why it does not wait for a replacement, in words; empty when one is ready or none is needed. */
  readonly detail: string;
}

/** Every shard is stopped; the commands are actions of their own. */
export interface StopReplica {
  readonly kind: "stop_replica";
  readonly replica: ReplicaId;
  readonly reason: StopReason;
}

/** The replica has failed whole. */
export interface FailReplica {
  readonly kind: "fail_replica";
  readonly replica: ReplicaId;
  readonly reason: FailureReason;
  readonly message: string;
  readonly permanent: boolean;
  readonly shard?: ShardId;
  readonly logTail: readonly string[];
  /** Counts for the model's backoff. */
  readonly counts: boolean;
}

/** Nothing of it runs any more. */
export interface ForgetReplica {
  readonly kind: "forget_replica";
  readonly replica: ReplicaId;
}

/** Why something is not done now. Closed words; the detail has the numbers. */
export type WaitReason =
  | "settling"
  | "no_catalog"
  | "command_in_flight"
  | "node_away"
  | "node_lost"
  | "leader_first"
  | "adopting"
  | "starting"
  | "stopping"
  | "unknown_state"
  | "replacement"
  | "requests_in_flight"
  | "one_at_a_time"
  | "pass_full"
  | "backoff"
  | "blocked"
  | "paused"
  | "no_room"
  | "scale_down_window";

export interface Wait {
  readonly subject: "shard" | "replica" | "model";
  readonly id: string;
  readonly why: WaitReason;
  readonly detail: string;
  /** When it is looked at again at the latest; absent when only an event helps. */
  readonly until?: EpochMs;
}

export interface Attempt {
  readonly model: string;
  /** Why nothing fitted, e.g. "0/12 nodes fit: 7 gpus_free"; absent when it was placed. */
  readonly noRoom?: string;
}

/** One step in the number of replicas that a model has, on demand. */
export interface ScaleStep {
  readonly model: string;
  readonly count: number;
  /** In words, with numbers. */
  readonly reason: string;
}

export interface Plan {
  readonly actions: readonly Action[];
  readonly waiting: readonly Wait[];
  /** Shards that are as they should be. */
  readonly kept: readonly ShardId[];
  /** Models for which placement was tried. */
  readonly attempts: readonly Attempt[];
  readonly steps: readonly ScaleStep[];
  /** When the next pass is due though nothing happens. */
  readonly wakeAt?: EpochMs;
}
