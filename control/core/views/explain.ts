/** Why a model is placed as it is, or is not, asked of placement itself and not of what it said. */
import { formatDurationMs } from "@heddle/common/duration";
import { failedOn, stillBlocked, whatHelps } from "../facts/circumstance.ts";
import { failedStarts } from "../facts/model_reason.ts";
import { sourceHint } from "../facts/source_hint.ts";
import type { Model } from "../catalog.ts";
import { byPriority } from "../deciding/room.ts";
import { ending } from "../facts/shard_facts.ts";
import type { EpochMs } from "../ids.ts";
import { candidates } from "../placing/candidate.ts";
import { summarise } from "../placing/explain.ts";
import { place } from "../placing/place.ts";
import type { World } from "../world.ts";
import { viewModels } from "./models.ts";
import type { ExplainView, PlacementView, RejectionView } from "../views.ts";

/** `model` is a name. A model that left the catalog has only placements. */
export function explainModel(world: World, name: string, now: EpochMs): ExplainView {
  const model = world.catalog.catalog.models.find((each) => each.name === name);
  const placements = placementsOf(world, name);
  const lastAttemptAt = world.models.get(name)?.lastAttemptAt;
  const { summary, rejections } = model === undefined
    ? { summary: "it left the catalog and is being stopped", rejections: [] }
    : nextReplica(world, model, now);
  const placed = placements.length === 0
    ? summary
    : `${placements.length} placed; for one more: ${summary}`;
  const wanted = viewModels(world, now).find((each) => each.name === name);
  return {
    model: name,
    summary: [...decided(world, name), ...failing(world, model, now), placed].join("; "),
    placements,
    rejections,
    desiredReplicas: wanted?.desiredReplicas ?? 0,
    scaleReason: wanted?.scaleReason ?? "",
    ...(lastAttemptAt === undefined ? {} : { lastAttemptMs: Math.max(0, now - lastAttemptAt) }),
  };
}

/** What operators decided about the model comes first: it explains more than any node does. */
function decided(world: World, name: string): readonly string[] {
  const paused = world.decisions.paused.get(name);
  const scale = world.decisions.scales.get(name);
  return [
    ...(paused === undefined
      ? []
      : [`paused by ${paused.by}: ${paused.reason || "no reason given"}`]),
    ...(scale === undefined ? [] : [`held at ${scale.replicas} by ${scale.by}`]),
  ];
}

/** Why room alone does not start it. */
function failing(world: World, model: Model | undefined, now: EpochMs): readonly string[] {
  const record = model === undefined ? undefined : world.models.get(model.name);
  if (model === undefined || record === undefined) return [];
  const blocked = record.blocked.filter((each) => stillBlocked(world, model, each));
  const waitMs = (record.backoffUntil ?? 0) - now;
  const retry = `at once with: heddle models retry ${model.name}`;
  return [
    ...blocked.map((each) => {
      const where = each.node === undefined ? "" : ` on ${each.node}`;
      const helps = whatHelps(each, model.name);
      return `profile ${each.profile} cannot start${where}: ${each.message}; ${helps}`;
    }),
    ...(record.failedStarts > 0 && waitMs > 0
      ? [
        `${failedStarts(record)}, the next in ${formatDurationMs(waitMs)} or ` +
        `${retry}; the last: ${record.lastFailure ?? "cause unknown"}`,
      ]
      : []),
  ];
}

function placementsOf(world: World, name: string): readonly PlacementView[] {
  return [...world.replicas.values()]
    .filter((replica) => replica.model === name && !ending(replica))
    .sort((a, b) => a.id < b.id ? -1 : 1)
    .map((replica) => ({
      replicaId: replica.id,
      profile: replica.profile,
      nodes: replica.shards.map((shard) => shard.node),
      scores: replica.scores,
      notes: replica.notes,
    }));
}

function nextReplica(
  world: World,
  model: Model,
  now: EpochMs,
): { readonly summary: string; readonly rejections: readonly RejectionView[] } {
  const all = [...candidates(world, now).values()];
  const profiles = byPriority(model);
  const hint = sourceHint(world, model);
  const record = world.models.get(model.name);
  const asked = profiles.map((profile) => ({
    profile,
    placement: place(
      { model, profile, hint, failedOn: failedOn(world, record, { model, profile }) },
      all,
    ),
  }));
  return {
    summary: asked.map(({ profile, placement }) =>
      profiles.length === 1 ? summarise(placement) : `${profile.name}: ${summarise(placement)}`
    ).join("; "),
    rejections: asked.flatMap(({ profile, placement }) =>
      placement.rejections.map(({ node, reason, detail }) => ({
        profile: profile.name,
        node,
        reason,
        detail,
      }))
    ),
  };
}
