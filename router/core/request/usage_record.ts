/** The one record that each request to an engine leaves, however it ended. */
import type { TenantKey } from "../tenancy/key.ts";
import type { OutcomeReason } from "./outcome.ts";
import type { Usage } from "../usage.ts";

export interface UsageRecord {
  readonly requestId: string;
  readonly caller: string;
  /** The key that is charged; undefined where none of control's was shown. */
  readonly key: TenantKey | undefined;
  /** As the trusted proxies tell, if there are any. */
  readonly clientAddress: string;
  readonly route: string;
  /** As the client wrote it; empty when the request could not be read. */
  readonly modelAsked: string;
  /** The model that answered, or was asked last; empty when none was. */
  readonly model: string;
  readonly replicaId: string;
  /** Fabric and GPU class of that replica; empty when nobody says. */
  readonly pool: string;
  readonly outcome: OutcomeReason;
  /** Of the answer; 499 when the client left first. */
  readonly status: number;
  readonly stream: boolean;
  /** Replicas that the request was sent to. */
  readonly tries: number;
  /** In the order in which they were made. */
  readonly attempts: readonly Attempt[];
  /** Undefined when no engine did any work for it. */
  readonly usage: Usage | undefined;
  /** The router counted instead of the engine. */
  readonly estimated: boolean;
  /** Millionths of a unit. */
  readonly costMicro: number;
  /** Empty where the request was not admitted. */
  readonly band: string;
  readonly routingProfile: string;
  /** How long it waited to be admitted. */
  readonly queueMs: number;
  readonly durationMs: number;
  /** From the request's arrival to the first content written to the client. */
  readonly firstContentMs: number | undefined;
}

/** One replica that a request was sent to. */
export interface Attempt {
  readonly replicaId: string;
  readonly model: string;
  readonly outcome: OutcomeReason;
  /** Undefined when it did no work, as far as can be told. */
  readonly usage: Usage | undefined;
  readonly estimated: boolean;
  /** The client has this one's answer, or what there was of it. */
  readonly served: boolean;
  readonly engineMs: number;
  readonly gpus: number;
}
