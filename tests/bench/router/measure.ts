/** One workload through one gateway, in numbers. */
import { run, type Samples } from "./client.ts";
import type { Gateway } from "./gateways.ts";

export interface Workload {
  readonly connections: number;
  readonly promptKb: number;
  readonly stream: boolean;
  readonly seconds: number;
}

/** Milliseconds, but for the rates. */
export interface Measured {
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
  readonly firstP50: number;
  readonly firstP99: number;
  /** Of streams only. */
  readonly chunkP50: number | undefined;
  readonly chunkP99: number | undefined;
  /** Processor time of the gateway for a request; undefined where nothing is started. */
  readonly cpuPerRequest: number | undefined;
  readonly memoryMib: number | undefined;
  readonly failures: number;
}

/** Before each measurement, so that its connections are open. */
const WARM_SECONDS = 1;

/** Sends the workload's requests for its time. */
export function load({ target }: Gateway, workload: Workload): Promise<Samples> {
  const { connections, seconds } = workload;
  return run({ target, connections, seconds, body: bodyOf(workload) });
}

export async function measure(gateway: Gateway, workload: Workload): Promise<Measured> {
  await load(gateway, { ...workload, seconds: WARM_SECONDS });
  const before = await gateway.process?.cost();
  const samples = await load(gateway, workload);
  const after = await gateway.process?.cost();
  return {
    ...summary(samples),
    cpuPerRequest: before === undefined || after === undefined
      ? undefined
      : (after.cpuMs - before.cpuMs) / Math.max(1, samples.whole.length),
    memoryMib: after?.memoryMib,
  };
}

function summary(samples: Samples): Omit<Measured, "cpuPerRequest" | "memoryMib"> {
  const { whole, first, chunk, failures, elapsedMs } = samples;
  return {
    perSecond: whole.length / elapsedMs * 1_000,
    p50: percentile(whole, 0.5),
    p99: percentile(whole, 0.99),
    firstP50: percentile(first, 0.5),
    firstP99: percentile(first, 0.99),
    chunkP50: chunk.length === 0 ? undefined : percentile(chunk, 0.5),
    chunkP99: chunk.length === 0 ? undefined : percentile(chunk, 0.99),
    failures,
  };
}

function bodyOf({ promptKb, stream }: Workload): string {
  return JSON.stringify({
    model: "m",
    stream,
    max_tokens: 64,
    messages: [{ role: "user", content: "word ".repeat(promptKb * 1_024 / 5) }],
  });
}

/** NaN of nothing. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}
