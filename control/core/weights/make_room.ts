/**
 * Which unused weights go, and why: the disk of a node has little room left, or a model that waits
 * for a place would fit if there were more. Oldest unused first, one at a time on a node, since only
 * its next word says what that gave.
 */
import { formatDurationMs } from "@heddle/common/duration";
import { decodeWeightsState } from "@heddle/proto/weights_state";
import type { Model } from "../catalog.ts";
import { isFetched } from "../catalog/source.ts";
import { desired } from "../facts/desired.ts";
import { settled } from "../facts/settled.ts";
import { ending } from "../facts/shard_facts.ts";
import { failedOn } from "../facts/circumstance.ts";
import { sourceHint } from "../facts/source_hint.ts";
import type { EpochMs, NodeId } from "../ids.ts";
import { type Candidate, candidates } from "../placing/candidate.ts";
import { place } from "../placing/place.ts";
import { weightsNearness, weightsOf } from "../placing/weights.ts";
import type { Node, World } from "../world.ts";
import type { UnusedByFolder, UnusedWeights } from "./unused.ts";

/** Nobody has asked for so long: an edit of a catalog that is taken back at once costs nothing. */
export const UNUSED_MS_MIN = 60_000;

const GIB = 2 ** 30;

export interface Removal extends Pick<UnusedWeights, "node" | "folder" | "source" | "sizeBytes"> {
  readonly reason: "disk_pressure" | "room_for_model";
  /** In words, with numbers. */
  readonly detail: string;
}

/** At most one for each node, and none twice. Pure. */
export function weightsToRemove(
  world: World,
  unused: UnusedByFolder,
  { freeBelowBytes, now }: { readonly freeBelowBytes: number; readonly now: EpochMs },
): readonly Removal[] {
  if (!settled(world, now)) return [];
  const ripe = ripeByNode(world, unused, now);
  if (ripe.size === 0) return [];
  const found = new Map<string, Removal>();
  const taken = new Set<NodeId>();
  const take = (node: NodeId, reason: Removal["reason"], why: string) => {
    const [oldest] = ripe.get(node) ?? [];
    if (oldest === undefined || taken.has(node)) return;
    taken.add(node);
    // Nodes that share a folder all have it; whoever comes first removes it for all.
    if (found.has(oldest.folder)) return;
    const { folder, source, sizeBytes, since } = oldest;
    const detail = `${why}; nobody asked for it for ${formatDurationMs(now - since)}`;
    found.set(folder, { node, folder, source, sizeBytes, reason, detail });
  };
  for (const name of ripe.keys()) {
    const free = freeOf(world.nodes.get(name));
    if (free === undefined || free >= freeBelowBytes) continue;
    const have = `${gib(free)} GiB are free on its disk of weights`;
    take(name, "disk_pressure", `${have}, less than ${gib(freeBelowBytes)}`);
  }
  for (const model of world.catalog.catalog.models) {
    for (const node of shortOf(world, model, { ripe, freeBelowBytes, now })) {
      take(node, "room_for_model", `${model.name} needs the room for ${model.source}`);
    }
  }
  return [...found.values()];
}

type Ripe = ReadonlyMap<NodeId, readonly UnusedWeights[]>;

/** What may go on each node that can be asked, oldest unused first. */
function ripeByNode(world: World, unused: UnusedByFolder, now: EpochMs): Ripe {
  const away = [...world.knownNodes].some((name) => world.nodes.get(name)?.connected !== true);
  const byNode = new Map<NodeId, UnusedWeights[]>();
  for (const each of unused.values()) {
    const node = world.nodes.get(each.node);
    if (node?.connected !== true || now - each.since < UNUSED_MS_MIN) continue;
    // A node that is away may run something of a folder that it shares.
    if (away && node.inventory.modelDirs[0]?.shared === true) continue;
    byNode.set(each.node, [...byNode.get(each.node) ?? [], each]);
  }
  const sorted = [...byNode].sort(([a], [b]) => a < b ? -1 : 1);
  return new Map(sorted.map(([name, all]) => [
    name,
    all.sort((a, b) => a.since - b.since || a.place - b.place),
  ]));
}

interface Looked {
  readonly ripe: Ripe;
  readonly freeBelowBytes: number;
  readonly now: EpochMs;
}

/** Nodes where the model lacks nothing but the room that unused weights take. */
function shortOf(world: World, model: Model, looked: Looked): readonly NodeId[] {
  if (!isFetched(model.source) || !wanted(world, model, looked.now)) return [];
  const hint = sourceHint(world, model);
  const need = hint.totalBytes;
  if (need === undefined) return [];
  const full = [...looked.ripe.keys()].filter((name) => {
    const node = world.nodes.get(name);
    const free = freeOf(node);
    return node !== undefined && free !== undefined && ranFull(node, model) &&
      free < need + looked.freeBelowBytes;
  });
  if (full.length > 0) return full;
  const real = candidates(world, looked.now);
  const roomy = [...real.values()].map((each) => withRoom(each, looked.ripe));
  const fits = (nodes: Iterable<Candidate>) =>
    model.profiles.toSorted((a, b) => b.priority - a.priority)
      .map((profile) => {
        const failed = failedOn(world, world.models.get(model.name), { model, profile });
        return place({ model, profile, hint, failedOn: failed }, nodes);
      })
      .find((placement) => placement.kind === "placed");
  if (fits(real.values()) !== undefined) return [];
  const placed = fits(roomy);
  if (placed?.kind !== "placed") return [];
  return placed.seats.map(({ candidate: { name } }) => name).filter((name) => {
    const node = world.nodes.get(name);
    const free = freeOf(node);
    return node !== undefined && free !== undefined && free < need &&
      weightsNearness(node.inventory, model) === 0;
  });
}

/** More replicas should run than do, and the last try found no room or failed. */
function wanted(world: World, model: Model, now: EpochMs): boolean {
  if (world.decisions.paused.has(model.name)) return false;
  const running = [...world.replicas.values()]
    .filter((replica) => replica.model === model.name && !ending(replica)).length;
  return desired(world, model, running, now).count > running;
}

/** It began to fetch the model's weights, and the disk was full. */
function ranFull({ inventory }: Node, model: Model): boolean {
  return weightsOf(inventory, model).some(({ state, reason }) =>
    decodeWeightsState(state) === "failed" && reason === "disk_full"
  );
}

function withRoom(candidate: Candidate, ripe: Ripe): Candidate {
  const room = (ripe.get(candidate.name) ?? []).reduce((sum, each) => sum + each.sizeBytes, 0);
  const [first, ...rest] = candidate.inventory.modelDirs;
  if (room === 0 || first?.freeBytes === undefined) return candidate;
  const roomier = { ...first, freeBytes: first.freeBytes + BigInt(room) };
  return { ...candidate, inventory: { ...candidate.inventory, modelDirs: [roomier, ...rest] } };
}

/** Of the disk that is fetched to. */
function freeOf(node: Node | undefined): number | undefined {
  const free = node?.inventory.modelDirs[0]?.freeBytes;
  return free === undefined ? undefined : Number(free);
}

function gib(bytes: number): string {
  return (bytes / GIB).toFixed(1);
}
