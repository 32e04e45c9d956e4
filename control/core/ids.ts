/** What things are called, and how control counts time. Ids are made from the world alone. */

/** Milliseconds on control's clock. Never compared with another machine's. */
export type EpochMs = number;
/** The name in the agent's certificate. */
export type NodeId = string;
/** "<model>-<term><salt>-<sequence>" with the model's name made fit for unit names. */
export type ReplicaId = string;
/** "<replica>-<rank>" */
export type ShardId = string;
/** The name in the router's certificate, "host/1". */
export type RouterId = string;
