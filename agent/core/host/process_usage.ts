/** What processes take of their node, from readings that grow. */

/** One reading of all that belongs to a process; what is absent is unknown. */
export interface ProcessUsage {
  /** CPU time since it was started, in seconds, of what it started and has ended too. */
  readonly cpuSeconds?: number;
  readonly memoryBytes?: number;
}

const KIB = 1024;

/** Sums what heddle-shim prints of all runs, by handle; any other line is passed over. Never throws. */
export function readShimUsage(lines: readonly string[]): ReadonlyMap<string, ProcessUsage> {
  const ticksPerSecond = Number(/^ticks (\d{1,6})$/.exec(lines[0] ?? "")?.[1] ?? 0);
  const sums = new Map<string, { ticks: number; anon: number; shared: number }>();
  for (const line of lines) {
    const [, handle, ticks, anon, shared] =
      /^([\w.-]{1,255}) \d{1,10} (\d{1,15}) (\d{1,15}) (\d{1,15})$/.exec(line) ?? [];
    if (handle === undefined) continue;
    const sum = sums.get(handle) ?? { ticks: 0, anon: 0, shared: 0 };
    sums.set(handle, {
      ticks: sum.ticks + Number(ticks),
      anon: sum.anon + Number(anon),
      // Workers of one engine share the same memory: it is there once.
      shared: Math.max(sum.shared, Number(shared)),
    });
  }
  return new Map(
    [...sums].map(([handle, { ticks, anon, shared }]) => [handle, {
      ...(ticksPerSecond > 0 ? { cpuSeconds: ticks / ticksPerSecond } : {}),
      memoryBytes: (anon + shared) * KIB,
    }]),
  );
}

/** What systemd says of a unit: `[not set]`, or 2^64-1, where nothing is counted. Never throws. */
export function readUnitUsage(
  properties: Readonly<Record<string, string>>,
): ProcessUsage {
  const nanoseconds = counted(properties["CPUUsageNSec"]);
  const memoryBytes = counted(properties["MemoryCurrent"]);
  return {
    ...(nanoseconds === undefined ? {} : { cpuSeconds: nanoseconds / 1e9 }),
    ...(memoryBytes === undefined ? {} : { memoryBytes }),
  };
}

function counted(text: string | undefined): number | undefined {
  const value = /^\d{1,20}$/.test(text ?? "") ? Number(text) : undefined;
  return value !== undefined && value <= Number.MAX_SAFE_INTEGER ? value : undefined;
}

/** What processes take now; what is absent is unknown. */
export interface Taken {
  /** Of one CPU: 250 are two and a half. */
  readonly cpuPercent?: number;
  readonly memoryBytes?: number;
}

/** A reading with the time of it, in ms. */
export interface UsageSample {
  readonly usage: ProcessUsage;
  readonly at: number;
}

/**
 * CPU taken between two readings, in percent of one CPU; undefined when it cannot be told. A process
 * that ends takes its time out of the sum where nobody waited for it: less than before is unknown.
 */
export function cpuPercent(
  before: UsageSample | undefined,
  after: UsageSample,
): number | undefined {
  const [from, to] = [before?.usage.cpuSeconds, after.usage.cpuSeconds];
  const passedMs = after.at - (before?.at ?? after.at);
  if (from === undefined || to === undefined || passedMs <= 0 || to < from) return undefined;
  return Math.round((to - from) * 100_000 / passedMs * 10) / 10;
}

/** The sum of what is known; undefined when nothing is. */
export function total(values: readonly (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined);
  return known.length === 0 ? undefined : known.reduce((sum, value) => sum + value, 0);
}
