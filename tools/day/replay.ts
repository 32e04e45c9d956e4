/** One day against one choice of replicas. */
import { catalogSchema } from "../../control/core/catalog.ts";
import { DayFleet, MODEL } from "./fleet.ts";
import { DAY_S, type Trace } from "./trace.ts";

/** Parts of a second: fine enough for a first token, coarse enough for minutes of waiting. */
const STEPS_PER_S = 5;
/** The fleet has settled before the day begins. */
const BEFORE_S = 1_800;
const SAMPLE_S = 60;

export const SLO = { ttftMs: 1_500, tpotMs: 50 };

export interface Scaling {
  readonly min: number;
  readonly max: number;
  readonly target: number;
}

/** A minute. */
export interface Sample {
  readonly atS: number;
  readonly requestsPerS: number;
  readonly ready: number;
  /** Part of requests that were late or refused. */
  readonly missed: number;
}

export interface Replayed {
  readonly samples: readonly Sample[];
  readonly requests: number;
  readonly late: number;
  readonly refused: number;
  readonly gpuHours: number;
  /** Changes of the number of replicas that are ready. */
  readonly changes: number;
}

export interface ReplayOptions {
  readonly trace: Trace;
  readonly hours: number;
  readonly scaling: Scaling;
}

export function replay({ trace, hours, scaling }: ReplayOptions): Replayed {
  const catalog = catalogSchema.parse({
    models: [{
      name: MODEL,
      source: "org/weights",
      scaling,
      slo: { ttft_p99: `${SLO.ttftMs}ms`, tpot_p99: `${SLO.tpotMs}ms` },
      profiles: [{ name: "p", gpu_class: "h100-80g", tp: 1 }],
    }],
  });
  const fleet = new DayFleet(catalog, SLO, 1_000_000);
  const stepMs = 1_000 / STEPS_PER_S;
  const samples: Sample[] = [];
  const sums = { requests: 0, late: 0, refused: 0, gpuSeconds: 0, changes: 0 };
  let ready = 0;
  for (let second = -BEFORE_S; second < Math.ceil(hours * 3_600); second++) {
    for (let part = 0; part < STEPS_PER_S; part++) {
      fleet.step(stepMs, trace.arrivals(second + part / STEPS_PER_S, 1 / STEPS_PER_S));
    }
    if (second < 0) {
      fleet.take();
      ready = fleet.ready;
      continue;
    }
    sums.gpuSeconds += fleet.gpus;
    if (fleet.ready !== ready) sums.changes++;
    ready = fleet.ready;
    if ((second + 1) % SAMPLE_S !== 0) continue;
    const { served, late, refused } = fleet.take();
    const requests = served + refused;
    sums.requests += requests;
    sums.late += late;
    sums.refused += refused;
    samples.push({
      atS: second + 1,
      requestsPerS: trace.rate(second),
      ready,
      missed: requests === 0 ? 0 : (late + refused) / requests,
    });
  }
  const { requests, late, refused, changes } = sums;
  return { samples, requests, late, refused, changes, gpuHours: sums.gpuSeconds / 3_600 };
}

export const HOURS = DAY_S / 3_600;
