/**
 * How full a model's replicas are, as a gradient: 0 idle, 1 full, more when overfull. Of a replica
 * the worst of three signs counts: requests in flight against its capacity, its KV cache, and the
 * queue inside the engine. Signs that are not known do not count.
 */

export interface ReplicaFullness {
  readonly inFlight: number;
  readonly capacity: number;
  /** Requests that stand in the engine's queue. */
  readonly standing: number | undefined;
  readonly kvUsage: number | undefined;
}

export interface SaturationTargets {
  /** Share of the KV cache at which a replica is full. */
  readonly kvUsage: number;
  /** Requests waiting inside an engine at which it is full. */
  readonly waiting: number;
}

export interface Fullness {
  readonly saturation: number;
  /** Requests that all the replicas together take. */
  readonly capacity: number;
}

/** One overfull replica must not hide that the others have room. */
const REPLICA_MAX = 1.5;

/** The mean over the replicas, by capacity. Without any replica it is full. */
export function fullnessOf(
  replicas: readonly ReplicaFullness[],
  targets: SaturationTargets,
): Fullness {
  let capacity = 0;
  let used = 0;
  for (const replica of replicas) {
    capacity += replica.capacity;
    used += replica.capacity * Math.min(saturationOf(replica, targets), REPLICA_MAX);
  }
  return { saturation: capacity === 0 ? 1 : used / capacity, capacity };
}

/** One replica's. */
function saturationOf(replica: ReplicaFullness, targets: SaturationTargets): number {
  return Math.max(
    replica.inFlight / replica.capacity,
    (replica.kvUsage ?? 0) / targets.kvUsage,
    (replica.standing ?? 0) / targets.waiting,
  );
}
