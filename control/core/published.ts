/** What routers are told: every model, every endpoint, and which nodes control has judged. */
import type { Plain } from "@heddle/proto/plain";
import type { Endpoint, Model } from "@heddle/proto/gen/router";
import type { Revision } from "@heddle/proto/revision";
import type { NodeId, ReplicaId } from "./ids.ts";

/** Why an endpoint is not there any more. Never because a node is unreachable or unsettled. */
export type RemovalReason = "stopped" | "failed" | "lost";

/**
 * One publication. Models and endpoints that did not change are the same objects as in the one
 * before, so that a delta is a comparison by identity.
 */
export interface Published {
  readonly revision: Revision;
  /** By name; every model of the catalog, also one without endpoints. */
  readonly models: ReadonlyMap<string, Plain<Model>>;
  /** By replica. A draining one stays, with `draining`, until it is stopped. */
  readonly endpoints: ReadonlyMap<ReplicaId, Plain<Endpoint>>;
  /** Replicas that control knows and that are no endpoint any more. One that is in neither map and
   * was in the publication before has been stopped. */
  readonly removed: ReadonlyMap<ReplicaId, RemovalReason>;
  /** Nodes that have registered with this control or are lost: what is not listed there is gone.
   * Sorted. */
  readonly settledNodes: readonly NodeId[];
  /** Control has heard from all known nodes, or waited long enough. */
  readonly settled: boolean;
}

/** What a term begins with: nobody has been told anything. */
export function nothingPublished(term: number): Published {
  return {
    revision: { term, sequence: 0 },
    models: new Map(),
    endpoints: new Map(),
    removed: new Map(),
    settledNodes: [],
    settled: false,
  };
}
