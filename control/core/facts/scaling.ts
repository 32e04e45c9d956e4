/**
 * The next step in the number of replicas, from demand. Both directions look back over a window: up
 * only by what was asked for all the time, down only to what would have carried the most of it. The
 * windows end at the last report, so that time without reports decides nothing.
 */
import { formatDurationMs } from "@heddle/common/duration";
import type { Model } from "../catalog.ts";
import type { EpochMs } from "../ids.ts";
import type { ScaleStep } from "../plan.ts";
import type { DemandSample, World } from "../world.ts";
import { SAMPLE_MS, scales } from "./demand.ts";
import { settleDeadline } from "./settled.ts";

/** The reason of the number that control begins with. */
const FOUND = "as many as were found running";

/** After so long without a report nobody knows what the demand is, in ms. */
const GAP_MS = 3 * SAMPLE_MS;

/** Replicas are taken away when the rest would be filled to this share of their target at most, so
 * that demand near a step does not go up and down it. */
const FILL_MAX = 0.8;

/** Share of requests that may miss an slo for the 99th percentile. */
const MISSED_SHARE_MAX = 0.01;

/** Fewer answers than this say nothing about a 99th percentile. */
const ANSWERS_MIN = 100;

/** When replicas may be taken away at the earliest, whatever the demand. */
export function scaleDownFrom(world: World): EpochMs {
  return settleDeadline(world) + world.timings.scaleDownWindowMs;
}

export interface Fleet {
  /** Replicas that are not on their way out. */
  readonly live: number;
  /** Those of them that have been ready. */
  readonly ready: number;
  /** Those of them that were found running, on nodes that were never lost. */
  readonly found: number;
}

/** Undefined when the number stays, or does not depend on demand. */
export function scaleStep(
  world: World,
  model: Model,
  fleet: Fleet,
  now: EpochMs,
): ScaleStep | undefined {
  const { name, scaling } = model;
  if (!scales(model) || world.decisions.scales.has(name)) return undefined;
  const record = world.models.get(name);
  const bounded = (count: number) => Math.min(scaling.max, Math.max(scaling.min, count));
  const scaled = record?.scaled ?? { count: fleet.live, reason: FOUND, at: now };
  // Nodes that nobody remembers come one by one, and what they run is not surplus.
  const more = scaled.reason === FOUND && now < scaleDownFrom(world) ? fleet.found : 0;
  const current = bounded(Math.max(scaled.count, more));
  const first = record?.scaled === undefined || (more > scaled.count && current > scaled.count)
    ? { model: name, count: current, reason: FOUND }
    : undefined;
  const samples = record?.demand ?? [];
  if (now - (samples.at(-1)?.to ?? 0) > GAP_MS) return first;
  const step = up(world, model, { samples, current, ready: fleet.ready, since: scaled.at }) ??
    down(world, model, { samples, current, since: scaled.at }, now);
  if (step === undefined) return first;
  const count = bounded(step.count);
  return count === current ? first : { model: name, count, reason: step.reason };
}

interface Seen {
  readonly samples: readonly DemandSample[];
  readonly current: number;
  /** When the number was last changed. */
  readonly since: EpochMs;
}

interface Step {
  readonly count: number;
  readonly reason: string;
}

function up(world: World, model: Model, seen: Seen & { readonly ready: number }): Step | undefined {
  const windowMs = world.timings.scaleUpWindowMs;
  const window = lookBack(seen.samples, windowMs);
  if (window === undefined) return undefined;
  const { target } = model.scaling;
  const low = window.reduce((least, each) => Math.min(least, each.low), Infinity);
  const count = Math.ceil(low / target);
  const over = formatDurationMs(windowMs);
  if (count > seen.current) {
    return { count, reason: `${low} requests or more for ${over}, ${target} for each replica` };
  }
  // What was added last must have had its effect before more is asked for.
  const from = window[0]?.from ?? 0;
  if (seen.ready < seen.current || from < seen.since) return undefined;
  const answered = window.reduce((sum, each) => sum + each.answered, 0);
  const missed = window.reduce((sum, each) => sum + each.missed, 0);
  return answered >= ANSWERS_MIN && missed > answered * MISSED_SHARE_MAX
    ? {
      count: seen.current + 1,
      reason: `${missed} of ${answered} requests missed the slo in ${over}`,
    }
    : undefined;
}

function down(world: World, model: Model, seen: Seen, now: EpochMs): Step | undefined {
  const windowMs = world.timings.scaleDownWindowMs;
  if (now < scaleDownFrom(world)) return undefined;
  const window = lookBack(seen.samples, windowMs);
  const from = window?.[0]?.from ?? 0;
  if (window === undefined || from < seen.since || !window.every((each) => each.whole)) {
    return undefined;
  }
  const answered = window.reduce((sum, each) => sum + each.answered, 0);
  const missed = window.reduce((sum, each) => sum + each.missed, 0);
  if (missed > answered * MISSED_SHARE_MAX) return undefined;
  const high = window.reduce((most, each) => Math.max(most, each.high), 0);
  const count = Math.ceil(high / (model.scaling.target * FILL_MAX));
  return count >= seen.current ? undefined : {
    count,
    reason: `at most ${high} requests for ${formatDurationMs(windowMs)}, ` +
      `${model.scaling.target} for each replica`,
  };
}

/** The samples of a whole window without gaps, up to the last one; undefined when there is none. */
function lookBack(
  samples: readonly DemandSample[],
  windowMs: number,
): readonly DemandSample[] | undefined {
  const end = samples.at(-1)?.to;
  if (end === undefined) return undefined;
  const begin = end - windowMs;
  const first = samples.findLastIndex((each) => each.from <= begin);
  if (first < 0) return undefined;
  const window = samples.slice(first);
  const gap = window.some((each, index) =>
    index > 0 && each.from - (window[index - 1]?.to ?? 0) > GAP_MS
  );
  return gap ? undefined : window;
}
