/** What keeps a model from carrying more, as a closed word and in an operator's words. Pure. */
import type { Model } from "../catalog.ts";
import { modelReason } from "../facts/model_reason.ts";
import type { EpochMs } from "../ids.ts";
import type { World } from "../world.ts";

export interface Bottleneck {
  readonly reason:
    | "not_measured"
    | "scaling_max"
    | "held"
    | "paused"
    | "hardware"
    | "starts_fail";
  readonly detail: string;
}

/** `world`: as it would be with everything running that fits and may run. */
export function bottleneck(
  world: World,
  { model, shape, runs, measured }: {
    readonly model: Model;
    readonly shape: string;
    /** Replicas in that world. */
    readonly runs: number;
    /** Some of them were measured. */
    readonly measured: boolean;
  },
  now: EpochMs,
): Bottleneck {
  const { name, scaling } = model;
  const { paused, scales } = world.decisions;
  if (runs > 0 && !measured) {
    const detail = `no profile that runs was measured for ${shape}: heddle bench ${name} ` +
      `--shape ${shape}`;
    return { reason: "not_measured", detail };
  }
  const held = scales.get(name);
  if (held !== undefined && runs >= held.replicas) {
    return { reason: "held", detail: `held at ${held.replicas} by ${held.by}` };
  }
  if (held === undefined && runs >= scaling.max) {
    return { reason: "scaling_max", detail: `scaling.max is ${scaling.max}` };
  }
  const pause = paused.get(name);
  if (pause !== undefined) return { reason: "paused", detail: `paused by ${pause.by}` };
  const record = world.models.get(name);
  const failing = (record?.failedStarts ?? 0) > 0 || (record?.blocked ?? []).length > 0;
  return {
    reason: failing ? "starts_fail" : "hardware",
    detail: record?.noRoom ?? modelReason(world, model, now),
  };
}
