/**
 * Which of the weights that Heddle fetched nobody asks for any more, and since when. Asked for is,
 * on every node, what a model of the catalog or a replica anywhere names: nodes may share a folder,
 * and a model that runs on one node today runs on another tomorrow.
 */
import type { Plain } from "@heddle/proto/plain";
import type { Weights, WeightsWant } from "@heddle/proto/gen/weights";
import { decodeWeightsState } from "@heddle/proto/weights_state";
import { ended } from "../facts/shard_facts.ts";
import { wantOf } from "../placing/weights.ts";
import type { EpochMs, NodeId } from "../ids.ts";
import type { Shard, World } from "../world.ts";

/** Whole, fetched by Heddle, and asked for by nobody. */
export interface UnusedWeights {
  readonly node: NodeId;
  /** Name of its folder, by which it is removed. */
  readonly folder: string;
  readonly source: string;
  readonly sizeBytes: number;
  /** When this control first saw that nobody asks for it. */
  readonly since: EpochMs;
  /** Its place among what the node has, which is in the order in which it was fetched. */
  readonly place: number;
}

/** By node and folder. */
export type UnusedByFolder = ReadonlyMap<string, UnusedWeights>;

/** What is unused now; `before` says since when. What was asked for in between begins anew. */
export function unusedNow(world: World, before: UnusedByFolder, now: EpochMs): UnusedByFolder {
  const found = new Map<string, UnusedWeights>();
  const having = [...world.nodes.values()]
    .filter(({ inventory }) => (inventory.weights?.weights.length ?? 0) > 0);
  if (having.length === 0) return found;
  const asked = askedFor(world);
  for (const { name: node, inventory } of having) {
    const all = inventory.weights?.weights ?? [];
    const fetching = new Set(all.filter((each) => stateOf(each) === "fetching").map(keyOf));
    all.forEach((weights, place) => {
      if (stateOf(weights) !== "ready" || weights.folder === "") return;
      // Several versions of one want go by one name on the node.
      if (fetching.has(keyOf(weights)) || weights.shardIds.length > 0) return;
      if (asked.wants.has(keyOf(weights)) || asked.names(weights.folder)) return;
      const key = `${node}/${weights.folder}`;
      found.set(key, {
        node,
        folder: weights.folder,
        source: weights.want?.source ?? "",
        sizeBytes: Number(weights.sizeBytes),
        since: before.get(key)?.since ?? now,
        place,
      });
    });
  }
  return found;
}

/**
 * Who uses a folder of a node, in words; undefined: nobody that control knows of. One that the node has
 * not told of may be what a shard there has fetched a moment ago.
 */
export function userOf(world: World, node: NodeId, folder: string): string | undefined {
  const told = world.nodes.get(node)?.inventory.weights?.weights ?? [];
  const weights = told.find((each) => each.folder === folder);
  const whole = new Set(told.filter((each) => stateOf(each) === "ready").map(keyOf));
  const may = (want: string) =>
    weights === undefined
      ? !folder.startsWith(UNFINISHED) && !whole.has(want)
      : want === keyOf(weights);
  for (const replica of world.replicas.values()) {
    for (const shard of replica.shards) {
      if (shard.node !== node || ended(shard)) continue;
      const { weights: want } = shard.spec;
      const wants = want !== undefined && may(keyText(want));
      if (wants || words(shard).includes(folder)) return shard.id;
    }
  }
  return undefined;
}

/** So begin the names of what a node has not fetched to the end; what it uses of it, it tells of. */
const UNFINISHED = ".";

interface Asked {
  readonly wants: ReadonlySet<string>;
  /** Something that is asked for has the folder in a path of its own. */
  names(folder: string): boolean;
}

function askedFor(world: World): Asked {
  const wants = new Set<string>();
  const texts = [JSON.stringify(world.catalog.catalog)];
  for (const model of world.catalog.catalog.models) {
    const want = wantOf(model, "");
    if (want !== undefined) wants.add(keyText(want));
  }
  for (const { shards } of world.replicas.values()) {
    for (const shard of shards) {
      if (ended(shard)) continue;
      const { weights } = shard.spec;
      if (weights !== undefined) wants.add(keyText(weights));
      texts.push(words(shard));
    }
  }
  const all = texts.join("\n");
  return { wants, names: (folder) => all.includes(folder) };
}

// A draft model or an adapter may be given to an engine by its path.
function words({ spec: { source, args, env } }: Shard): string {
  return [source, ...args, ...Object.values(env)].join("\n");
}

function keyOf({ want }: Plain<Weights>): string {
  return want === undefined ? "" : keyText(want);
}

function keyText({ source, include, exclude }: Plain<WeightsWant>): string {
  return JSON.stringify([source, include, exclude]);
}

function stateOf({ state }: Plain<Weights>) {
  return decodeWeightsState(state);
}
