/**
 * All of control's cluster state as one immutable value. Only `observe` (facts), `record` (decisions)
 * and `publish` (what routers get) make a new one, sharing everything that did not change.
 *
 * What is derived is not stored: a node's state, its free GPUs and ports, whether control is settled
 * are functions of this value and `now`.
 */
import type { ModelFacts } from "@heddle/common/model/model_facts";
import type { Plain } from "@heddle/proto/plain";
import type { ExitRecord, Inventory, ShardSpec } from "@heddle/proto/gen/types";
import type { Revision } from "@heddle/proto/revision";
import type { ShardState } from "@heddle/proto/shard_state";
import type { AttachedEngine } from "./attach/attached.ts";
import type { Catalog } from "./catalog.ts";
import { type Failures, rememberedRecord } from "./deciding/failures.ts";
import type { EpochMs, NodeId, ReplicaId, RouterId, ShardId } from "./ids.ts";
import type { Members } from "./observing/layered_map.ts";
import type { RouterModelLoad, RouterReplicaLoad } from "./usage/router_load.ts";
import { nothingPublished, type Published } from "./published.ts";
import { DEFAULT_TIMINGS, type Timings } from "./timings.ts";

export interface World {
  readonly cluster: string;
  /** Orders decisions over restarts and takeovers; ids made in it contain it. */
  readonly term: number;
  /** Stands in ids beside the term: a store that was lost, or is old, gives a term again. */
  readonly salt: string;
  /** Of the last decision or publication in this term. */
  readonly sequence: number;
  readonly startedAt: EpochMs;
  readonly timings: Timings;
  readonly catalog: CatalogState;
  /** Every node that ever registered and was not forgotten by an operator. Stored. */
  readonly knownNodes: Members<NodeId>;
  /** Nodes that registered with this control. */
  readonly nodes: ReadonlyMap<NodeId, Node>;
  readonly replicas: ReadonlyMap<ReplicaId, Replica>;
  /** What is remembered of models apart from the catalog. A missing entry is a clean record. */
  readonly models: ReadonlyMap<string, ModelRecord>;
  readonly decisions: Decisions;
  readonly routers: ReadonlyMap<RouterId, Router>;
  readonly published: Published;
  /** Engines that something else started, by "<deployment>/<engine>". None of them is a replica. */
  readonly attached: ReadonlyMap<ReplicaId, AttachedEngine>;
  /** What nodes read at sources that nobody has fetched yet; see `sourceKey`. */
  readonly sources?: ReadonlyMap<string, SourceSeen>;
}

/** What a node read at a source. */
export interface SourceSeen {
  readonly version: string;
  readonly totalBytes: number;
  /** Undefined: it does not say. */
  readonly weightBytes: number | undefined;
  /** Absent: nothing is known. */
  readonly model?: ModelFacts;
}

/** The catalog that is acted on. */
export interface CatalogState {
  readonly catalog: Catalog;
  readonly text: string;
  /** Rises by one with every applied text; 0 before the first. */
  readonly revision: number;
}

export interface Node {
  readonly name: NodeId;
  /** Host name or IP address, without a port, where its engines listen. */
  readonly address: string;
  readonly agentVersion: string;
  /** Changes when the machine restarts. */
  readonly bootId: string;
  /** Changes when the agent restarts. */
  readonly agentInstance: string;
  readonly inventory: Plain<Inventory>;
  readonly registeredAt: EpochMs;
  readonly lastSeenAt: EpochMs;
  /** Its stream is open. Losing it marks nothing else: silence does. */
  readonly connected: boolean;
  /** When it last registered after having been lost. */
  readonly returnedAt?: EpochMs;
  /** First ports of blocks where it found a program that is not ours, with when it said so. */
  readonly foreignPorts?: ReadonlyMap<number, EpochMs>;
}

/** One running copy of a model. It has every shard it was placed with; adopted ones fill up. */
export interface Replica {
  readonly id: ReplicaId;
  readonly model: string;
  /** Name of the profile when it was placed. */
  readonly profile: string;
  readonly fingerprint: string;
  /** Shards that make it whole; `shards` has fewer only while an adopted one fills up. */
  readonly shardCount: number;
  /** By rank. */
  readonly shards: readonly Shard[];
  readonly createdAt: EpochMs;
  /** By when it must be ready; after that it has failed. */
  readonly readyDeadline: EpochMs;
  /** When it was first seen ready. */
  readonly readyAt?: EpochMs;
  /** Found running, not placed by this control. */
  readonly adopted: boolean;
  /** Named scores of its placement in [0,1]; empty when adopted. */
  readonly scores: Readonly<Record<string, number>>;
  /** What an operator should know of the placement, e.g. that no NVLink clique was large enough. */
  readonly notes: readonly string[];
  /** It should go; it serves until its replacement is there. */
  readonly retiring?: Retiring;
  /** It takes no new requests. */
  readonly draining?: Draining;
  /** Every shard is being stopped, and why. */
  readonly stopping?: Stopping;
  /** It has failed: every shard is stopped. */
  readonly failure?: Failure;
}

export interface Shard {
  readonly id: ShardId;
  readonly node: NodeId;
  readonly rank: number;
  readonly spec: Plain<ShardSpec>;
  /** What its node last said of it; absent until then. */
  readonly status?: ObservedShard;
  /** The last command that was sent for it; absent for an adopted shard until the first one. */
  readonly command?: Command;
}

/** A shard as its node sees it. */
export interface ObservedShard {
  readonly state: ShardState;
  readonly revision: Revision;
  readonly attempt: number;
  readonly reason: string;
  readonly message: string;
  readonly permanent: boolean;
  readonly pid?: number;
  readonly address: string;
  /** Held in memory only; never stored, never logged. */
  readonly apiKey: string;
  readonly exit?: Plain<ExitRecord>;
  readonly logTail: readonly string[];
  /** When it entered this state, on control's clock. */
  readonly since: EpochMs;
  /** The engine's own numbers; absent is unknown. */
  readonly load?: ObservedLoad;
  readonly maxModelLen?: number;
  readonly progress: string;
}

export interface ObservedLoad {
  readonly running: number;
  readonly waiting: number;
  readonly at: EpochMs;
}

/** A command that was recorded before it was sent. */
export interface Command {
  readonly kind: "start" | "stop";
  readonly revision: Revision;
  readonly sentAt: EpochMs;
  /** Without an answer by then it is sent again, with the same revision. */
  readonly deadline: EpochMs;
  /** The agent's answer; absent until it came. */
  readonly answer?: CommandAnswer;
}

export interface CommandAnswer {
  readonly accepted: boolean;
  /** Closed snake_case word of the agent; empty when accepted. */
  readonly reason: string;
  readonly detail: string;
}

export type RetireReason =
  /** An operator drains a node it runs on. */
  | "node_draining"
  /** An operator wants it replaced. */
  | "operator_restart"
  /** An operator wants it gone, with or without a replacement. */
  | "operator_stop"
  /** Its profile changed so that it needs a new engine, or is gone. */
  | "profile_changed"
  /** The model left the catalog. */
  | "model_removed"
  /** More replicas run than are wanted. */
  | "surplus"
  /** Its node was lost and came back after the replica was rebuilt elsewhere. */
  | "rebuilt_elsewhere";

export interface Retiring {
  readonly reason: RetireReason;
  readonly since: EpochMs;
}

export interface Draining {
  readonly reason: RetireReason;
  readonly since: EpochMs;
  /** After that it is stopped with whatever it still has. */
  readonly deadline: EpochMs;
  /** First publication that says it drains; routers that applied it send nothing new. */
  readonly publishedAs?: Revision;
}

export type StopReason =
  | RetireReason
  | "drained"
  | "drain_grace_passed"
  | "replica_failed"
  | "never_ready";

export interface Stopping {
  readonly reason: StopReason;
  readonly since: EpochMs;
}

export type FailureReason =
  /** A shard reported that it failed. */
  | "shard_failed"
  /** A shard stopped without having been asked to, or its node no longer has it. */
  | "shard_vanished"
  /** The agent refused to start a shard. */
  | "start_refused"
  /** It was not ready within the profile's startup_timeout. */
  | "startup_timeout"
  /** A node that held one of its shards is lost, or its machine restarted. */
  | "node_lost"
  /** It was found running with shards missing. */
  | "partial";

export interface Failure {
  readonly reason: FailureReason;
  readonly message: string;
  readonly at: EpochMs;
  /** Starting again without a change cannot help. */
  readonly permanent: boolean;
  /** Which shard failed first; absent when it is not one shard's doing. */
  readonly shard?: ShardId;
  readonly logTail: readonly string[];
}

/** What is remembered of a model between its replicas. */
export interface ModelRecord extends Failures {
  /** No new start before that. */
  readonly backoffUntil?: EpochMs;
  /** When placement was last tried. */
  readonly lastAttemptAt?: EpochMs;
  /** Why it found no room, e.g. "0/12 nodes fit: 7 gpus_free"; absent when it did. */
  readonly noRoom?: string;
  /** When the catalog first had it, on control's clock. */
  readonly createdAt?: EpochMs;
  /** Last demand for it: a wake, or requests that a router reported. */
  readonly demandAt?: EpochMs;
  /** How much was asked of it lately, oldest first; only of models that scale. */
  readonly demand?: readonly DemandSample[];
  /** The number that demand calls for; absent until it was first judged. */
  readonly scaled?: Scaled;
}

/** Demand for one model over a few seconds. */
export interface DemandSample {
  /** When it was begun and last added to. */
  readonly from: EpochMs;
  readonly to: EpochMs;
  /** Fewest and most requests in flight and waiting, by what routers and engines say. */
  readonly low: number;
  readonly high: number;
  /** Every router that might send requests was heard. */
  readonly whole: boolean;
  /** Requests that routers answered, and those of them that missed the slo. */
  readonly answered: number;
  readonly missed: number;
}

/** A decision about the number of replicas. */
export interface Scaled {
  readonly count: number;
  /** In words, with numbers. */
  readonly reason: string;
  readonly at: EpochMs;
}

/** Operators' decisions. Stored, and kept over restarts of control and agents. */
export interface Decisions {
  readonly nodes: ReadonlyMap<NodeId, NodeDecision>;
  readonly paused: ReadonlyMap<string, Decision>;
  readonly scales: ReadonlyMap<string, ScaleDecision>;
  /** Labels that operators put on nodes; they win over the node's own. */
  readonly labels: ReadonlyMap<NodeId, Readonly<Record<string, string>>>;
  /** Replicas that an operator wants replaced or stopped. */
  readonly replicas: ReadonlyMap<ReplicaId, ReplicaDecision>;
  /** Certificates that count no more: "serial/<hex>", or "<role>/<name>" for all of a holder. */
  readonly struck: ReadonlyMap<string, Strike>;
}

export interface Decision {
  readonly by: string;
  readonly reason: string;
  readonly at: EpochMs;
}

export interface NodeDecision extends Decision {
  readonly kind: "cordon" | "drain";
}

export interface Strike extends Decision {
  /** What was issued later, by the signer's clock, is good: the holder has been given a new one. */
  readonly issuedBefore: EpochMs;
}

export interface ScaleDecision extends Decision {
  readonly replicas: number;
}

export interface ReplicaDecision extends Decision {
  /** `stop_at_once` cuts the requests that it has. */
  readonly kind: "restart" | "stop" | "stop_at_once";
}

export interface Router {
  readonly name: RouterId;
  readonly version: string;
  /** Changes when the router restarts. */
  readonly instance: string;
  readonly leaseUntil: EpochMs;
  readonly lastReportAt: EpochMs;
  /** Newest publication it has applied. */
  readonly applied: Revision;
  readonly replicas: ReadonlyMap<ReplicaId, RouterReplicaLoad>;
  readonly models: ReadonlyMap<string, RouterModelLoad>;
}

export const NO_DECISIONS: Decisions = {
  nodes: new Map(),
  paused: new Map(),
  scales: new Map(),
  labels: new Map(),
  replicas: new Map(),
  struck: new Map(),
};

/** What control knows when it starts: only what was stored. */
export interface Remembered {
  readonly cluster: string;
  /** The stored term; the new one is higher by one. 0 when nothing was stored. */
  readonly storedTerm: number;
  /** Letters at random, others at each start. @default none, for tests that look at ids */
  readonly salt?: string;
  readonly catalog: CatalogState;
  readonly knownNodes: Members<NodeId>;
  readonly decisions: Decisions;
  /** By model. @default none */
  readonly failures?: ReadonlyMap<string, Failures>;
  readonly timings?: Timings;
}

/** A world that has heard from nobody yet, in a new term. The caller stores `term` before acting. */
export function startWorld(remembered: Remembered, now: EpochMs): World {
  const { cluster, storedTerm, catalog, knownNodes, decisions } = remembered;
  const term = storedTerm + 1;
  const timings = remembered.timings ?? DEFAULT_TIMINGS;
  const failures = [...remembered.failures ?? []];
  return {
    cluster,
    term,
    salt: remembered.salt ?? "",
    sequence: 0,
    startedAt: now,
    timings,
    catalog,
    knownNodes,
    nodes: new Map(),
    replicas: new Map(),
    models: new Map(
      failures.map(([model, each]) => [
        model,
        rememberedRecord(model, each, { bounds: timings.backoff, now }),
      ]),
    ),
    decisions,
    routers: new Map(),
    attached: new Map(),
    published: nothingPublished(term),
  };
}
