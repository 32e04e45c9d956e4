/**
 * Has nodes read what the catalog's sources hold, before any of them fetches: then placement knows
 * their sizes, and all nodes fetch one version. Each source is asked about until somebody answers.
 */
import { backoffMs } from "@heddle/common/backoff";
import { logger } from "@heddle/common/log";
import { decodeModelFacts } from "@heddle/common/model/model_wire";
import { delay } from "@heddle/common/task";
import { errorText } from "@heddle/proto/error";
import type { SourceFacts } from "@heddle/proto/gen/weights";
import { isFetched } from "../../core/catalog/source.ts";
import type { SourceInspected } from "../../core/event.ts";
import { sourceHint, sourceKey } from "../../core/facts/source_hint.ts";
import { wantOf } from "../../core/placing/weights.ts";
import type { World } from "../../core/world.ts";
import type { NodeRequests } from "../node_requests.ts";
import { inspectOn } from "./inspect_on.ts";

const log = logger("control", "weights");

const LOOK_MS = 2_000;
const RETRY = { firstMs: 60_000, maxMs: 600_000 };

export interface ScoutOptions {
  readonly loop: {
    world(): World;
    now(): number;
    dispatch(event: SourceInspected): Promise<void>;
  };
  readonly requests: Pick<NodeRequests, "ask">;
  /** False while another control may lead. */
  readonly sure: () => boolean;
}

interface Trial {
  readonly failures: number;
  readonly nextAt: number;
}

/** Runs until `signal` aborts. Never rejects. */
export async function scoutSources(options: ScoutOptions, signal: AbortSignal): Promise<void> {
  const trials = new Map<string, Trial>();
  while (!signal.aborted) {
    await delay(LOOK_MS, signal);
    if (signal.aborted || !options.sure()) continue;
    await scout(options, trials);
  }
}

async function scout({ loop, requests }: ScoutOptions, trials: Map<string, Trial>): Promise<void> {
  const world = loop.world();
  for (const model of world.catalog.catalog.models) {
    // The simulated engine has no weights.
    const served = model.profiles.some(({ engine }) => engine !== "sim");
    if (!served || !isFetched(model.source)) continue;
    if (sourceHint(world, model).totalBytes !== undefined) continue;
    const key = sourceKey(model);
    const trial = trials.get(key) ?? { failures: 0, nextAt: 0 };
    const want = wantOf(model, "");
    const node = [...world.nodes.values()].find(({ connected }) => connected)?.name;
    if (want === undefined || node === undefined || loop.now() < trial.nextAt) continue;
    try {
      const facts = await inspectOn(requests, node, want);
      await loop.dispatch({ kind: "source_inspected", source: key, seen: seenOf(facts) });
      trials.delete(key);
    } catch (error) {
      const failures = trial.failures + 1;
      trials.set(key, { failures, nextAt: loop.now() + backoffMs(key, failures, RETRY) });
      log.warning("Cannot read what a model's source holds", {
        model: model.name,
        node,
        why: errorText(error),
      });
    }
  }
}

function seenOf({ want, totalBytes, weightBytes, model }: SourceFacts) {
  return {
    version: want?.version ?? "",
    totalBytes: Number(totalBytes),
    weightBytes: weightBytes === undefined ? undefined : Number(weightBytes),
    model: decodeModelFacts(model),
  };
}
