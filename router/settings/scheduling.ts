/** Scheduling and admission as the program uses them: durations in ms, sizes in bytes. */
import type { Band } from "../core/admission/band.ts";
import type { BandBounds, Bounds } from "../core/admission/model_queue.ts";
import type { BandPolicy } from "../core/admission/standing.ts";
import type { SaturationTargets } from "../core/load/saturation.ts";
import type { ProfileWeights } from "../core/schedule/routing_profile.ts";
import type { Config } from "./fields.ts";

export interface SchedulingSettings {
  /** 0: engines are never asked. */
  readonly scrapeMs: number;
  readonly profiles: ProfileWeights;
}

export interface AdmissionSettings {
  readonly policy: BandPolicy;
  readonly targets: SaturationTargets;
  readonly bounds: Bounds;
  /** A replica's capacity where it is set; by model. */
  readonly capacities: ReadonlyMap<string, number>;
}

/** What converts text of the configuration. */
export interface Units {
  readonly ms: (text: string) => number;
  readonly bytes: (text: string) => number;
}

export function schedulingOf({ scheduling }: Config, { ms }: Units): SchedulingSettings {
  return { scrapeMs: ms(scheduling.scrape_interval), profiles: scheduling.profiles };
}

export function admissionOf({ admission }: Config, units: Units): AdmissionSettings {
  const { models, bands, saturation } = admission;
  return {
    policy: {
      fallback: admission.band_default,
      ceiling: admission.band_ceiling,
      ofModel: new Map(
        models.flatMap(({ name, band }): [string, Band][] =>
          band === undefined ? [] : [[name, band]]
        ),
      ),
    },
    targets: { kvUsage: saturation.kv_cache_usage, waiting: saturation.waiting },
    bounds: {
      platinum: boundsOf(bands.platinum, units),
      gold: boundsOf(bands.gold, units),
      silver: boundsOf(bands.silver, units),
      bronze: boundsOf(bands.bronze, units),
    },
    capacities: new Map(
      models.flatMap(({ name, capacity }): [string, number][] =>
        capacity === undefined ? [] : [[name, capacity]]
      ),
    ),
  };
}

function boundsOf(band: Config["admission"]["bands"][Band], { ms, bytes }: Units): BandBounds {
  return {
    requestsMax: band.requests_max,
    bytesMax: bytes(band.bytes_max),
    waitMsMax: ms(band.wait_max),
    promoteAfterMs: ms(band.promote_after),
  };
}
