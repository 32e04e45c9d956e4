/** Whether a change must survive the agent. What is only about the next look need not. */
import type { Shard } from "./shard.ts";

const PASSING: ReadonlySet<string> = new Set([
  "nextProbeAt",
  "nextMeasureAt",
  "nextCountAt",
  "failedProbes",
  "progress",
  "stall",
  "askedAt",
  "suspicion",
  "survivors",
  "survivorWords",
]);

export function worthSaving(before: Shard, after: Shard): boolean {
  return lasting(before) !== lasting(after);
}

function lasting(shard: Shard): string {
  const state = Object.entries(shard.state).filter(([name]) => !PASSING.has(name));
  const { term, sequence } = shard.revision;
  return JSON.stringify([state, term, sequence, shard.spec.attempt, shard.apiKey]);
}
