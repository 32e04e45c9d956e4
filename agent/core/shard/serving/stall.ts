/**
 * Whether an engine does its work. Health says nothing: an engine whose ranks wait for each other
 * answers 200 for hours. But it counts what it has worked off; while requests run, that must grow.
 */
import type { EngineLoad } from "../event.ts";
import type { EpochMs } from "../shard.ts";

/** Work that stands still while requests wait for it. */
export interface Stall {
  /** What the engine's counters said, and since when they have said the same. */
  readonly progress: number;
  readonly since: EpochMs;
}

/** The stall after a new reading; undefined when there is none, or nothing can be known. */
export function nextStall(
  before: Stall | undefined,
  load: EngineLoad | undefined,
  now: EpochMs,
): Stall | undefined {
  const { progress } = load ?? {};
  if (progress === undefined || !isBusy(load)) return undefined;
  return before?.progress === progress ? before : { progress, since: now };
}

/** True when requests are known to run or wait. */
export function isBusy(load: EngineLoad | undefined): boolean {
  return (load?.running ?? 0) + (load?.waiting ?? 0) > 0;
}
