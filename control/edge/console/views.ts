/** What operators see of the world, cut down to what the console shows. Pure. */
import { LinkLayer } from "@heddle/proto/gen/types";
import { settled, unheard } from "../../core/facts/settled.ts";
import { viewEveryNode, viewEveryReplica } from "../../core/views/attached.ts";
import { viewDecisions } from "../../core/views/decisions.ts";
import { viewModels } from "../../core/views/models.ts";
import { replicaWord } from "../../core/views/replicas.ts";
import { viewRouters } from "../../core/views/routers.ts";
import type { AttachedView, ModelView, NodeView, ReplicaView } from "../../core/views.ts";
import type { World } from "../../core/world.ts";
import type {
  AttachedItem,
  DecisionItem,
  GpuItem,
  HcaItem,
  ModelItem,
  NodeItem,
  ReplicaItem,
  RouterItem,
  StatusItem,
} from "./wire.ts";

type Inventory = NonNullable<NodeView["inventory"]>;

export function statusItem(world: World, now: number): StatusItem {
  const isSettled = settled(world, now);
  return {
    leading: true,
    standing: "",
    settled: isSettled,
    unheard: isSettled ? [] : unheard(world),
    term: world.term,
    catalogRevision: world.catalog.revision,
  };
}

/** Of a control that stands by. */
export function standbyItem(standing: string): StatusItem {
  return { leading: false, standing, settled: false, unheard: [], term: 0, catalogRevision: 0 };
}

export function nodeItems(world: World, now: number): Map<string, NodeItem> {
  return new Map(viewEveryNode(world, now).map((view) => [view.name, nodeItem(view, now)]));
}

export function modelItems(world: World, now: number): Map<string, ModelItem> {
  return new Map(
    viewModels(world, now).map((view, order) => [view.name, modelItem(view, order, now)]),
  );
}

export function replicaItems(world: World, now: number): Map<string, ReplicaItem> {
  return new Map(
    viewEveryReplica(world, now).map((view) => [view.replicaId, replicaItem(view, now)]),
  );
}

export function routerItems(world: World, now: number): Map<string, RouterItem> {
  return new Map(
    viewRouters(world, now).map((view) => [view.name, {
      version: view.version,
      current: view.current,
      leased: view.leased,
      reportAt: Math.round(now - view.lastReportMs),
      inFlight: view.inFlight,
      waiting: view.waiting,
    }]),
  );
}

export function decisionItems(world: World, now: number): Map<string, DecisionItem> {
  return new Map(
    viewDecisions(world, now).map(({ decidedMs, ...view }) => [`${view.kind} ${view.subject}`, {
      ...view,
      ...(decidedMs === undefined ? {} : { at: Math.round(now - decidedMs) }),
    }]),
  );
}

function nodeItem(view: NodeView, now: number): NodeItem {
  const { inventory, lastSeenMs } = view;
  const heard = ["ready", "cordoned", "draining", "drained"].includes(view.state);
  return {
    state: view.state,
    address: view.address,
    agentVersion: view.agentVersion,
    known: inventory !== undefined || view.attached !== undefined,
    // Of a node that is heard it would change all the time and say nothing.
    ...(heard || lastSeenMs === undefined ? {} : { seenAt: Math.round(now - lastSeenMs) }),
    cordoned: view.cordoned,
    draining: view.draining,
    decidedBy: view.decidedBy,
    decisionReason: view.decisionReason,
    replicaIds: view.replicaIds,
    ...attachedPart(view.attached),
    ...hardwareOf(inventory),
  };
}

/** The lease is left out: it would change with every look, and says nothing while it holds. */
function attachedPart(view: AttachedView | undefined): { readonly attached?: AttachedItem } {
  if (view === undefined) return {};
  const { state, provider, hostId, cards, nvlinks } = view;
  return {
    attached: {
      ...{ state, provider, hostId },
      ...(cards === undefined ? {} : { cards }),
      ...(nvlinks === undefined ? {} : { nvlinks: { up: nvlinks.up, expected: nvlinks.expected } }),
    },
  };
}

function hardwareOf(inventory: Inventory | undefined) {
  return {
    system: inventory === undefined ? "" : [inventory.os, inventory.arch].join(" ").trim(),
    cpus: inventory?.cpuCount ?? 0,
    ...(inventory?.memoryBytes === undefined
      ? {}
      : { memoryGib: Math.round(Number(inventory.memoryBytes) / 2 ** 30) }),
    driver: inventory?.driverVersion ?? "",
    labels: inventory?.labels ?? {},
    engines: (inventory?.engines ?? []).map(({ name, version }) => ({ name, version })),
    fabrics: (inventory?.fabrics ?? []).map(({ name, rateGbps, degraded }) => ({
      name,
      degraded,
      ...(rateGbps === undefined ? {} : { gbps: rateGbps }),
    })),
    gpus: (inventory?.gpus ?? []).map(gpuItem),
    hcas: (inventory?.hcas ?? []).map(hcaItem),
    problems: [
      ...inventory?.problems ?? [],
      ...(inventory?.engines ?? []).flatMap(({ problems }) => problems),
    ].map(problemItem),
  };
}

function gpuItem(gpu: Inventory["gpus"][number]): GpuItem {
  return {
    index: gpu.index,
    name: gpu.name,
    gpuClass: gpu.gpuClass,
    ...(gpu.memoryTotalMib === undefined ? {} : { totalMib: gpu.memoryTotalMib }),
    ...(gpu.memoryUsedMib === undefined ? {} : { usedMib: gpu.memoryUsedMib }),
    ...(gpu.utilizationPercent === undefined ? {} : { percent: gpu.utilizationPercent }),
    ...(gpu.temperatureCelsius === undefined ? {} : { celsius: gpu.temperatureCelsius }),
    problems: gpu.problems.map(problemItem),
  };
}

function hcaItem(hca: Inventory["hcas"][number]): HcaItem {
  return {
    name: hca.name,
    port: hca.port,
    link: hca.linkLayer === LinkLayer.INFINIBAND
      ? "infiniband"
      : hca.linkLayer === LinkLayer.ETHERNET
      ? "ethernet"
      : "unknown",
    active: hca.active,
    ...(hca.rateGbps === undefined ? {} : { gbps: hca.rateGbps }),
    fabric: hca.fabric,
    problems: hca.problems.map(problemItem),
  };
}

function problemItem({ reason, detail, remedy }: Inventory["problems"][number]) {
  return { reason, detail, remedy };
}

function modelItem(view: ModelView, order: number, now: number): ModelItem {
  return {
    order,
    aliases: view.aliases,
    min: view.minReplicas,
    max: view.maxReplicas,
    desired: view.desiredReplicas,
    ready: view.readyReplicas,
    starting: view.startingReplicas,
    draining: view.drainingReplicas,
    failedStarts: view.failedStarts,
    ...(view.backoffMs === undefined ? {} : { nextStartAt: Math.round(now + view.backoffMs) }),
    reason: view.reason,
    scaleReason: view.scaleReason,
    ...(view.heldReplicas === undefined ? {} : { held: view.heldReplicas }),
    paused: view.paused,
    unsafeProfiles: view.unsafeProfiles,
  };
}

function replicaItem(view: ReplicaView, now: number): ReplicaItem {
  return {
    model: view.model,
    profile: view.profile,
    state: replicaWord(view),
    reason: view.reason,
    address: view.address,
    engine: view.engine,
    fabric: view.fabric,
    since: Math.round(now - view.inStateMs),
    ...attachedPart(view.attached),
    ...(view.inFlight === undefined ? {} : { inFlight: view.inFlight }),
    shards: view.shards.map((shard) => ({
      id: shard.shardId,
      node: shard.node,
      rank: shard.rank,
      state: shard.state,
      gpus: shard.gpus,
      hcas: shard.hcas.map(({ name, port }) => `${name}:${port}`),
      reason: shard.reason,
      message: shard.message,
      progress: shard.progress,
      logTail: shard.logTail,
    })),
  };
}
