/** What a look at the links means for a shard. */
import { judgeLinks, type LinkReadings } from "../core/health/link_fault.ts";
import type { ShardEvent } from "../core/shard/event.ts";
import type { Shard } from "../core/shard/shard.ts";

/** Undefined: nothing is known, or nothing that changes what the shard is. */
export function linkEvent(
  { spec, state }: Shard,
  readings: LinkReadings | undefined,
): ShardEvent | undefined {
  if (readings === undefined) return undefined;
  if (state.kind !== "ready" && state.kind !== "degraded") return undefined;
  const verdict = judgeLinks(spec, readings);
  switch (verdict.kind) {
    case "unknown":
      return undefined;
    case "well":
      return state.kind === "ready" || state.linkFault === undefined
        ? undefined
        : { type: "links_judged" };
    case "fault": {
      const { reason, message } = verdict;
      return { type: "links_judged", fault: { reason, message } };
    }
    default:
      return verdict satisfies never;
  }
}
