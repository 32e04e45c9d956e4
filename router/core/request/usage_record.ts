/** The one record that each request to an engine leaves, however it ended. */
import type { OutcomeReason } from "./outcome.ts";
import type { Usage } from "../usage.ts";

export interface UsageRecord {
  readonly requestId: string;
  readonly caller: string;
  /** As the trusted proxies tell, if there are any. */
  readonly clientAddress: string;
  readonly route: string;
  /** As the client wrote it; empty when the request could not be read. */
  readonly modelAsked: string;
  /** The model that answered, or was asked last; empty when none was. */
  readonly model: string;
  readonly replicaId: string;
  readonly outcome: OutcomeReason;
  readonly stream: boolean;
  /** Replicas that the request was sent to. */
  readonly tries: number;
  /** Undefined when no engine did any work for it. */
  readonly usage: Usage | undefined;
  /** The router counted instead of the engine. */
  readonly estimated: boolean;
  readonly durationMs: number;
  /** From the request's arrival to the first content written to the client. */
  readonly firstContentMs: number | undefined;
}
