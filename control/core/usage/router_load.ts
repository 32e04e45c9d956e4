/** What a router reports of the load on its replicas and models. */

export type RouterReplicaLoad = { readonly inFlight: number; readonly reservedTokens: number };

export interface RouterModelLoad {
  readonly waiting: number;
  readonly requests: number;
  readonly failures: number;
  /** Absent from a router that does not measure it. */
  readonly sloMisses?: number | undefined;
  /** Waiting for room, by band. Absent from a router that does not tell. */
  readonly queued?: Readonly<Record<"platinum" | "gold" | "silver" | "bronze", number>> | undefined;
}
