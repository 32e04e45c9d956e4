/** Tells control every so often what this router has in flight, which also renews its lease. */
import { encodeRevision, type Revision } from "@heddle/proto/revision";
import { fromRpc } from "@heddle/proto/error_code";
import { logger } from "@heddle/common/log";
import { delay } from "@heddle/common/task";
import type { Band } from "../../core/admission/band.ts";
import type { ControlRpc } from "./control_client.ts";

/** A report that takes longer is late anyway; the next one says the same and more. */
const REPORT_TIMEOUT_MS = 5_000;

/** What happened to a model's requests since the last report that arrived. */
export interface ModelReport {
  readonly model: string;
  readonly waiting: number;
  readonly requests: number;
  readonly failures: number;
  readonly sloMisses: number;
  /** Of those that wait, the ones that wait for room. */
  readonly queued: Readonly<Record<Band, number>>;
  readonly firstContent: readonly number[];
  /** Of answers whose engine says how much of that it had in its cache. */
  readonly promptTokens: number;
  readonly cachedTokens: number;
}

export interface ReplicaReport {
  readonly replicaId: string;
  readonly inFlight: number;
  readonly reservedTokens: number;
}

/** What a report is made of, and who gets what comes back. */
export interface ReportSource {
  applied(): Revision;
  replicas(): readonly ReplicaReport[];
  models(): readonly ModelReport[];
  /** The report with these models arrived: they are not to be counted again. */
  arrived(models: readonly ModelReport[], others: readonly ReplicaReport[]): void;
}

export interface ReporterOptions {
  readonly name: string;
  readonly instance: string;
  readonly intervalMs: number;
  readonly rpc: () => ControlRpc | undefined;
  readonly source: ReportSource;
}

/** Reports until `stop` aborts. */
export async function reportLoop(options: ReporterOptions, stop: AbortSignal): Promise<void> {
  const log = logger("router", "control");
  while (!stop.aborted) {
    const rpc = options.rpc();
    if (rpc !== undefined) {
      try {
        await report(rpc, options, stop);
      } catch (error) {
        if (!stop.aborted) log.warning(fromRpc(error, "Cannot report to control").message);
      }
    }
    await delay(options.intervalMs, stop);
  }
}

async function report(
  rpc: ControlRpc,
  { name, instance, source }: ReporterOptions,
  signal: AbortSignal,
): Promise<void> {
  const models = source.models();
  const answer = await rpc.report({
    router: name,
    routerInstance: instance,
    applied: encodeRevision(source.applied()),
    replicas: source.replicas().map((replica) => ({ ...replica })),
    models: models.map(encodeModel),
  }, { timeoutMs: REPORT_TIMEOUT_MS, signal });
  source.arrived(models, answer.others);
}

function encodeModel({ firstContent, promptTokens, cachedTokens, ...load }: ModelReport) {
  return {
    ...load,
    firstContent: { counts: [...firstContent] },
    ...(promptTokens === 0 ? {} : {
      promptCache: { promptTokens: BigInt(promptTokens), cachedTokens: BigInt(cachedTokens) },
    }),
  };
}
