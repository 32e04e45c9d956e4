/** Reads the load of a leader from its own metrics. */
import type { Address } from "@heddle/common/address";
import { askEngine } from "@heddle/common/engine/http";
import { engineLoad, type LoadNames } from "../../core/engine_load.ts";
import type { EngineLoad } from "../../core/shard/event.ts";

const METRICS_MS_MAX = 2_000;

/** Empty when it does not answer in time, or has no such metrics. Never rejects. */
export async function readLoad(
  engine: {
    readonly address: Address;
    readonly apiKey: string;
    readonly signal: AbortSignal;
  },
  names: LoadNames,
): Promise<EngineLoad> {
  const answer = await askEngine({ ...engine, path: "/metrics", deadlineMs: METRICS_MS_MAX });
  return answer.kind === "answer" && answer.status === 200 ? engineLoad(answer.text, names) : {};
}
