/** Everything that can happen to control, as one closed union. Times come with `observe`'s `now`. */
import type { Plain } from "@heddle/proto/plain";
import type { CommandResult, Heartbeat } from "@heddle/proto/gen/agent";
import type { Inventory, ShardReport, ShardStatus } from "@heddle/proto/gen/types";
import type { Revision } from "@heddle/proto/revision";
import type { AttachedClaimed, AttachedProved } from "./attach/observe.ts";
import type { EpochMs, NodeId, ReplicaId, RouterId } from "./ids.ts";
import type { RouterModelLoad, RouterReplicaLoad } from "./usage/router_load.ts";
import type { CatalogState, SourceSeen } from "./world.ts";

export type Event =
  | AgentEvent
  | OperatorEvent
  | RouterEvent
  | CatalogApplied
  | SourceInspected
  | AttachedClaimed
  | AttachedProved
  | Tick;

/** What an agent's stream says. `node` is the name its certificate gave, never one it claims. */
export type AgentEvent =
  | Registered
  | HeartbeatSeen
  | ShardStatusSeen
  | CommandResultSeen
  | StreamClosed;

/** The whole truth about a node: what it has and everything that runs there. */
export interface Registered {
  readonly kind: "registered";
  readonly node: NodeId;
  readonly agentVersion: string;
  readonly bootId: string;
  readonly agentInstance: string;
  /** Host, without a port. */
  readonly address: string;
  readonly inventory: Plain<Inventory>;
  readonly shards: readonly Plain<ShardReport>[];
  readonly highestRevision: Revision;
}

/** A sign of life, with whatever live values changed. */
export interface HeartbeatSeen {
  readonly kind: "heartbeat";
  readonly node: NodeId;
  readonly heartbeat: Plain<Heartbeat>;
}

export interface ShardStatusSeen {
  readonly kind: "shard_status";
  readonly node: NodeId;
  readonly status: Plain<ShardStatus>;
}

/** An agent's answer to a command. */
export interface CommandResultSeen {
  readonly kind: "command_result";
  readonly node: NodeId;
  readonly result: Plain<CommandResult>;
}

/** The node's newest stream ended. Not sent for a stream that a newer one replaced. */
export interface StreamClosed {
  readonly kind: "stream_closed";
  readonly node: NodeId;
}

/** A catalog that was parsed, judged (`judgeCatalog`) and is to be acted on from now on. */
export interface CatalogApplied {
  readonly kind: "catalog_applied";
  readonly catalog: CatalogState;
  /** The operator who applied it; absent when it came from the file. */
  readonly by?: string;
}

/** A node has read what a source holds, before anything of it was fetched. */
export interface SourceInspected {
  readonly kind: "source_inspected";
  /** As `sourceKey` names it. */
  readonly source: string;
  readonly seen: SourceSeen;
}

/** What an operator decides. `by` is the identity that was checked at the door. */
export type OperatorEvent =
  | {
    readonly kind: "cordon" | "drain";
    readonly node: NodeId;
    readonly by: string;
    readonly reason: string;
  }
  /** Ends cordon and drain. */
  | { readonly kind: "uncordon"; readonly node: NodeId; readonly by: string }
  /** Changes the labels that operators put on the node; the others stay. */
  | {
    readonly kind: "label";
    readonly node: NodeId;
    readonly set: Readonly<Record<string, string>>;
    readonly remove: readonly string[];
    readonly by: string;
  }
  /** Drops what is remembered of a node that will not come back. Ignored while it is connected. */
  | { readonly kind: "forget_node"; readonly node: NodeId; readonly by: string }
  /** Starts, replaces and scales nothing of this model until resumed; what failed is still cleaned up. */
  | { readonly kind: "pause"; readonly model: string; readonly by: string; readonly reason: string }
  | { readonly kind: "resume"; readonly model: string; readonly by: string }
  /** Holds the model at so many replicas until cleared. */
  | {
    readonly kind: "scale";
    readonly model: string;
    readonly replicas: number;
    readonly by: string;
    readonly reason: string;
  }
  | { readonly kind: "clear_scale"; readonly model: string; readonly by: string }
  /** Forgets the model's backoff and blocked profiles. */
  | { readonly kind: "retry"; readonly model: string; readonly by: string }
  /** Replaces or stops one replica; see ReplicaDecision. */
  | {
    readonly kind: "restart" | "stop" | "stop_at_once";
    readonly replica: ReplicaId;
    readonly by: string;
    readonly reason: string;
  }
  /** Lets certificates in no more; see Strike. */
  | {
    readonly kind: "strike";
    readonly struck: string;
    readonly issuedBefore: EpochMs;
    readonly by: string;
    readonly reason: string;
  };

export type RouterEvent =
  /** Renews the router's lease. The lists are whole. */
  | {
    readonly kind: "router_report";
    readonly router: RouterId;
    readonly version: string;
    readonly instance: string;
    readonly applied: Revision;
    readonly replicas: ReadonlyMap<ReplicaId, RouterReplicaLoad>;
    readonly models: ReadonlyMap<string, RouterModelLoad>;
  }
  /** The router said goodbye. A broken Watch stream is not that: then its lease runs out. */
  | { readonly kind: "router_gone"; readonly router: RouterId }
  /** A client asks for a model that may sleep. `model` is a name, not an alias. */
  | { readonly kind: "wake"; readonly model: string };

/** Nothing happened but time. */
export interface Tick {
  readonly kind: "tick";
}
