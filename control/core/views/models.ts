/** Models as operators see them. */
import type { Model } from "../catalog.ts";
import { formatDurationMs } from "@heddle/common/duration";
import { attachedEndpoints } from "../attach/publication.ts";
import { scales } from "../facts/demand.ts";
import { desired } from "../facts/desired.ts";
import { CLEAN_RECORD } from "../deciding/draft.ts";
import { modelReason } from "../facts/model_reason.ts";
import type { EpochMs } from "../ids.ts";
import type { Replica, World } from "../world.ts";
import { replicaState } from "./replicas.ts";
import type { ModelView } from "../views.ts";

/** Every model of the catalog, in its order. Then, by name, those that only run any more. */
export function viewModels(world: World, now: EpochMs): readonly ModelView[] {
  const { models } = world.catalog.catalog;
  const replicas = Map.groupBy(world.replicas.values(), (replica) => replica.model);
  const left = [...replicas.keys()].filter((name) => !models.some((each) => each.name === name));
  const attached = Map.groupBy(attachedEndpoints(world, now).values(), ({ model }) => model);
  return [
    ...models.map((model) =>
      viewModel(world, model, {
        replicas: replicas.get(model.name) ?? [],
        attached: attached.get(model.name)?.length ?? 0,
      }, now)
    ),
    ...left.sort().map((name) => viewLeaving(world, name, replicas.get(name) ?? [], now)),
  ];
}

function viewModel(
  world: World,
  model: Model,
  { replicas, attached }: { readonly replicas: readonly Replica[]; readonly attached: number },
  now: EpochMs,
): ModelView {
  const record = world.models.get(model.name) ?? CLEAN_RECORD;
  const counts = countStates(world, replicas, now);
  const running = counts.ready + counts.starting;
  const wanted = desired(world, model, running, now).count;
  const backoffMs = record.backoffUntil === undefined ? 0 : record.backoffUntil - now;
  const scale = world.decisions.scales.get(model.name);
  const held = scale === undefined ? "" : `held at ${scale.replicas} by ${scale.by}`;
  return {
    name: model.name,
    aliases: model.aliases,
    minReplicas: model.scaling.min,
    maxReplicas: model.scaling.max,
    desiredReplicas: wanted,
    readyReplicas: counts.ready,
    startingReplicas: counts.starting,
    drainingReplicas: counts.draining,
    attachedEngines: attached,
    failedStarts: record.failedStarts,
    ...(backoffMs > 0 && running < wanted ? { backoffMs } : {}),
    reason: [held, shortfall(world, model, { ready: counts.ready, wanted, attached }, now)]
      .filter((each) => each !== "").join("; "),
    unsafeProfiles: model.profiles.filter((each) => each.unsafe_env).map((each) => each.name),
    scaleReason: scaleReason(world, model, now),
    ...(scale === undefined ? {} : { heldReplicas: scale.replicas }),
    paused: world.decisions.paused.has(model.name),
  };
}

/** Empty while the number is the minimum because that is what was asked for. */
function scaleReason(world: World, model: Model, now: EpochMs): string {
  const scale = world.decisions.scales.get(model.name);
  if (scale !== undefined) {
    const why = scale.reason === "" ? "" : `: ${scale.reason}`;
    return `held at ${scale.replicas} by ${scale.by}${why}`;
  }
  const { reason } = desired(world, model, 1, now);
  if (reason === "asleep") return `no demand for ${formatDurationMs(world.timings.idleMs)}`;
  if (reason === "reports_missing") return "no router reports, so what runs is left alone";
  return scales(model) ? world.models.get(model.name)?.scaled?.reason ?? "" : "";
}

function shortfall(
  world: World,
  model: Model,
  { ready, wanted, attached }: {
    readonly ready: number;
    readonly wanted: number;
    readonly attached: number;
  },
  now: EpochMs,
): string {
  if (ready >= wanted && wanted + attached > 0) {
    const paused = world.decisions.paused.get(model.name);
    return paused === undefined ? "" : `paused by ${paused.by}: ${paused.reason}`;
  }
  return modelReason(world, model, now);
}

function viewLeaving(
  world: World,
  name: string,
  replicas: readonly Replica[],
  now: EpochMs,
): ModelView {
  const counts = countStates(world, replicas, now);
  const paused = world.decisions.paused.get(name);
  return {
    name,
    aliases: [],
    minReplicas: 0,
    maxReplicas: 0,
    desiredReplicas: 0,
    readyReplicas: counts.ready,
    startingReplicas: counts.starting,
    drainingReplicas: counts.draining,
    attachedEngines: 0,
    failedStarts: 0,
    reason: paused === undefined
      ? "it left the catalog and is being stopped"
      : `it left the catalog and is kept: paused by ${paused.by}: ${paused.reason}`,
    unsafeProfiles: [],
    scaleReason: "",
    paused: paused !== undefined,
  };
}

function countStates(world: World, replicas: readonly Replica[], now: EpochMs) {
  const counts = { ready: 0, starting: 0, draining: 0 };
  for (const replica of replicas) {
    const { state } = replicaState(world, replica, now);
    if (state === "ready" || state === "draining") counts[state]++;
    if (state === "starting" || state === "placing") counts.starting++;
  }
  return counts;
}
