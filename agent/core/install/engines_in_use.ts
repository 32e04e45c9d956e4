/** Which engines the shards of a node use. */
import type { PlannedProcess, Shard } from "../shard/shard.ts";
import type { EnginesInUse } from "./converge.ts";

/** A shard whose program is not known, or not chosen yet, uses every version of its engine. Pure. */
export function enginesInUse(shards: readonly Shard[]): EnginesInUse {
  const programs: string[] = [];
  const engines = new Set<string>();
  for (const { spec, state } of shards) {
    const processes: readonly PlannedProcess[] = [
      ...("planned" in state ? state.planned : []),
      ...("processes" in state ? state.processes : []),
    ];
    for (const { program } of processes) {
      if (program === undefined) engines.add(spec.engine);
      else programs.push(program);
    }
    if (state.kind === "preparing") engines.add(spec.engine);
  }
  return { programs, engines };
}
