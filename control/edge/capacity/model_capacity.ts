/** One model's capacity: looks ahead with the real core, and lets the arithmetic be done. */
import { create } from "@bufbuild/protobuf";
import {
  MeasurementSchema,
  type ModelCapacity,
  ModelCapacitySchema,
  type NodeGain,
  NodeGainSchema,
} from "@heddle/proto/gen/capacity";
import { parseDurationMs } from "@heddle/common/duration";
import { bottleneck } from "../../core/capacity/bottleneck.ts";
import {
  carried,
  type Counted,
  type ProfileSum,
  sumCapacity,
} from "../../core/capacity/capacity.ts";
import type { StoredMeasurement } from "../../core/capacity/measurement.ts";
import {
  emptyWorld,
  FILL_MAX,
  KINDS_MAX,
  kindsOf,
  type NodeKind,
  nodesTogether,
  wanting,
} from "../../core/capacity/one_more.ts";
import { groupsOf, hardwareClass, readyReplicas, replicasOf } from "../../core/capacity/running.ts";
import type { Model } from "../../core/catalog.ts";
import { ending } from "../../core/facts/shard_facts.ts";
import type { EpochMs } from "../../core/ids.ts";
import type { World } from "../../core/world.ts";
import { foresee } from "../foresee.ts";

export interface CapacityQuestion {
  readonly world: World;
  readonly now: EpochMs;
  readonly model: Model;
  readonly shape: string;
  /** Whether to look at one more node of each kind, too: as much work again for each. */
  readonly withGains: boolean;
  /** Newest first. */
  readonly stored: readonly StoredMeasurement[];
}

export async function capacityOf(question: CapacityQuestion): Promise<ModelCapacity> {
  const { world, now, model, shape, stored } = question;
  const { catalog } = world.catalog;
  const full = await foresee(world, wanting(catalog, model.name, model.scaling.max), now);
  const staying = replicasOf(full.world, model)
    .filter((replica) => !ending(replica) && replica.draining === undefined);
  const counted: Counted = {
    shape,
    measurements: stored,
    ready: groupsOf(world, model, readyReplicas(world, model, now)),
    most: groupsOf(full.world, model, staying),
  };
  const sum = sumCapacity(counted);
  const measured = sum.unmeasuredReplicas < staying.length;
  const held = bottleneck(full.world, { model, shape, runs: staying.length, measured }, now);
  const kinds = question.withGains ? kindsOf(world) : [];
  const gains: NodeGain[] = [];
  for (const kind of kinds.slice(0, KINDS_MAX)) {
    gains.push(await gainOf(question, counted, { kind, runs: staying.length }));
  }
  const some = gains.filter(({ replicas }) => replicas > 0);
  return create(ModelCapacitySchema, {
    model: model.name,
    shape,
    ...promiseOf(model),
    profiles: sum.profiles.map(profileMessage),
    nowPerSecond: sum.nowPerSecond,
    mostPerSecond: sum.mostPerSecond,
    unmeasuredReplicas: sum.unmeasuredReplicas,
    bottleneck: held.reason,
    bottleneckDetail: held.detail,
    // Kinds that run nothing of it are worth a line only where there is nothing else.
    gains: some.length > 0 ? some : gains,
    incomplete: full.end === "more" || kinds.length > KINDS_MAX,
  });
}

async function gainOf(
  { world, now, model }: CapacityQuestion,
  counted: Counted,
  { kind, runs }: { readonly kind: NodeKind; readonly runs: number },
): Promise<NodeGain> {
  const nodes = nodesTogether(model, kind);
  const empty = emptyWorld(world, kind, nodes, now);
  const catalog = wanting({ models: [model] }, model.name, FILL_MAX);
  const filled = await foresee(empty, catalog, now);
  const found = replicasOf(filled.world, model);
  const groups = groupsOf(filled.world, model, found);
  const unlimited = found.length >= FILL_MAX;
  const replicas = unlimited ? 0 : found.length;
  const requestsPerSecond = unlimited ? 0 : carried(groups, counted) / nodes;
  return create(NodeGainSchema, {
    hardwareClass: kind.hardwareClass,
    gpus: kind.gpus,
    likeNode: kind.like.name,
    nodes,
    replicas,
    requestsPerSecond,
    reason: unlimited
      ? "unlimited"
      : replicas === 0
      ? "no_room"
      : requestsPerSecond === 0
      ? "not_measured"
      : "",
    detail: unlimited
      ? "the profile names neither GPUs nor memory, so nothing says how many run on a node"
      : found.length === 0
      ? filled.world.models.get(model.name)?.noRoom ?? "no profile of it runs there"
      : details(model, runs + found.length, groups.some((each) => unknown(counted, each))),
  });
}

function unknown(counted: Counted, group: Parameters<typeof carried>[0][number]): boolean {
  return group.count > 0 && carried([group], counted) === 0;
}

function details({ scaling }: Model, runs: number, unmeasured: boolean): string {
  return [
    ...(runs > scaling.max ? [`scaling.max, ${scaling.max}, must rise for it`] : []),
    ...(unmeasured ? ["what would run there was never measured"] : []),
  ].join("; ");
}

function promiseOf({ slo }: Model): { ttftMs?: number; tpotMs?: number } {
  const ttftMs = parseDurationMs(slo.ttft_p99 ?? "");
  const tpotMs = parseDurationMs(slo.tpot_p99 ?? "");
  return {
    ...(ttftMs === undefined ? {} : { ttftMs }),
    ...(tpotMs === undefined ? {} : { tpotMs }),
  };
}

function profileMessage({ group, measured, notes, ...row }: ProfileSum) {
  const { profile, name, fingerprint } = group;
  return {
    profile: name,
    fingerprint,
    hardwareClass: profile === undefined ? measured?.hardwareClass ?? "" : hardwareClass(profile),
    gpus: profile === undefined ? 0 : profile.gpus_per_node * profile.nodes,
    nodes: profile?.nodes ?? 0,
    weight: profile?.weight ?? 0,
    measuredWeight: row.measuredWeight,
    readyReplicas: row.readyReplicas,
    mostReplicas: row.mostReplicas,
    notes: [...notes],
    ...(measured === undefined ? {} : { measured: create(MeasurementSchema, measured) }),
  };
}
