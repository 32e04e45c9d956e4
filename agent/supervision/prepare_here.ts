/** Prepares a shard with what this node has: its engines, its GPUs as they are now, its weights. */
import { logger } from "@heddle/common/log";
import type { Gpu } from "@heddle/proto/gen/types";
import type { Config } from "../config.ts";
import type { Shard } from "../core/shard/shard.ts";
import { progressWords } from "../core/weights/progress_words.ts";
import { inTime } from "../discovery/evidence_of.ts";
import { fitGpus } from "../discovery/fit_gpus.ts";
import type { EngineVersions } from "../edge/engine/versions.ts";
import { limitWarnings, readLimits } from "../edge/launcher/limits.ts";
import type { NodeEnvironment } from "../engines/environment.ts";
import type { Discovery } from "../inventory.ts";
import { prepare, type Prepared } from "../prepare.ts";
import type { NodeWeights } from "../weights/node_weights.ts";

const log = logger("agent");

/** How far a download is need not be told more often: control passes each on. */
const TELL_MS = 3_000;

export interface Here {
  readonly config: Config;
  readonly shim: string;
  readonly address: string;
  readonly engines: EngineVersions;
  readonly discovery: Discovery;
  readonly gpuFacts: () => readonly Gpu[];
  readonly environment: () => NodeEnvironment;
  readonly weights: NodeWeights;
  /** Told how far the weights are that the shard waits for. */
  readonly fetching: (progress: string) => void;
}

/** May reject once `signal` aborts. */
export async function prepareHere(
  shard: Shard,
  here: Here,
  signal: AbortSignal,
): Promise<Prepared> {
  const { config, address, engines, discovery } = here;
  // A shard that an earlier agent prepared is asked for before the engines were looked at.
  await Promise.race([engines.looked, aborted(signal)]);
  await warnOfLimits(shard, here.shim);
  return await prepare(shard, {
    address,
    modelDirs: config.model_dirs,
    engines: engines.survey.engines,
    fetch: (want) => fetchWeights(want, here, signal),
    gpus: () => fitGpus(shard, here.gpuFacts(), discovery, signal),
    environmentOf: (engine) => ({
      ...here.environment(),
      ofEngine: config.engines.find(({ name, path }) =>
        name === engine.name && path === engine.path
      )?.env ?? {},
    }),
  });
}

async function fetchWeights(
  want: NonNullable<Shard["spec"]["weights"]>,
  { weights, fetching }: Here,
  signal: AbortSignal,
) {
  let toldAt = -Infinity;
  return await weights.ensure(want, (report) => {
    const now = performance.now();
    if (now - toldAt < TELL_MS) return;
    toldAt = now;
    fetching(progressWords(report));
  }, signal);
}

// Only warned of: an engine may do without, and its own words then say what it lacked.
async function warnOfLimits({ spec }: Shard, shim: string): Promise<void> {
  const limits = await inTime(readLimits(shim)) ?? {};
  const warnings = limitWarnings(limits, { gpus: spec.gpus.length });
  for (const words of warnings) log.warning(words, { shard: spec.shardId });
}

function aborted(signal: AbortSignal): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>();
  signal.addEventListener("abort", () => reject(signal.reason));
  return promise;
}
