/** How good a fitting node is. Every score is named and in [0,1]; the weights stand in one place. */
import type { PlaceRequest } from "./fits.ts";
import type { Candidate } from "./candidate.ts";
import { nearTo, numaShare } from "./gpu_choice.ts";
import type { Seat } from "./seat.ts";
import { weightsNearness } from "./weights.ts";

export type ScoreName = "spread" | "packing" | "nvlink" | "numa" | "fabric" | "weights";
export type Scores = Readonly<Record<ScoreName, number>>;

/**
 * Compared one after the other before anything is weighed, so that no sum of the others wins over
 * them. Replicas of one model share a node only when that is all that stands in the way. Then a
 * clique: without one, every token pays.
 */
const FIRST = ["spread", "nvlink"] as const satisfies readonly ScoreName[];

/**
 * Weights that are there already save minutes once, and a worse place costs for as long as a replica
 * lives.
 */
const WEIGHTS: Readonly<Record<Exclude<ScoreName, typeof FIRST[number]>, number>> = {
  packing: 2,
  weights: 1.5,
  fabric: 1,
  numa: 0.5,
};

/** Differences below this are those of adding in another order. */
const EQUAL_WITHIN = 1e-9;

/** Scores of one seat. `alone`: the replica has one node, so that full nodes are the better ones. */
export function scoreSeat(request: PlaceRequest, seat: Seat, alone: boolean): Scores {
  const { candidate, choice, hcas } = seat;
  const same = candidate.models.get(request.model.name) ?? 0;
  const fullness = filled(candidate, choice.gpus.length);
  const degraded = candidate.inventory.fabrics.some((fabric) =>
    fabric.name === seat.fabric && fabric.degraded
  );
  return {
    spread: 1 / (1 + same),
    packing: alone ? fullness : 1 - filled(candidate, 0),
    nvlink: choice.linkedShare,
    numa: hcas.length === 0 ? numaShare(choice.gpus) : nearHca(seat),
    fabric: degraded ? 0.5 : 1,
    weights: weightsNearness(candidate.inventory, request.model),
  };
}

/** Mean of each score over the seats of one replica. */
export function meanScores(all: readonly Scores[]): Scores {
  const mean = (name: ScoreName) =>
    all.reduce((sum, scores) => sum + scores[name], 0) / Math.max(1, all.length);
  return {
    spread: mean("spread"),
    packing: mean("packing"),
    nvlink: mean("nvlink"),
    numa: mean("numa"),
    fabric: mean("fabric"),
    weights: mean("weights"),
  };
}

/** Negative when the first is the better place, as sorting wants it; 0 when neither is. */
export function compareScores(a: Scores, b: Scores): number {
  const { have, want } = comparison(a, b);
  return Math.abs(want - have) > EQUAL_WITHIN ? want - have : 0;
}

/** The first thing in which two places differ, with what either has of it, in [0,1]. */
export function comparison(a: Scores, b: Scores): Comparison {
  const by = FIRST.find((name) => Math.abs(a[name] - b[name]) > EQUAL_WITHIN);
  if (by !== undefined) return { by, have: a[by], want: b[by] };
  return { by: "score", have: weighed(a), want: weighed(b) };
}

interface Comparison {
  /** "score" is the weighted mean. */
  readonly by: typeof FIRST[number] | "score";
  readonly have: number;
  readonly want: number;
}

function weighed(scores: Scores): number {
  const { packing, weights, fabric, numa } = WEIGHTS;
  const sum = packing * scores.packing + weights * scores.weights + fabric * scores.fabric +
    numa * scores.numa;
  return sum / (packing + weights + fabric + numa);
}

/** How full the node is once `more` GPUs are taken: by GPUs where it has any, else by shards. */
function filled(candidate: Candidate, more: number): number {
  const total = candidate.inventory.gpus.length;
  if (total > 0) return Math.min(1, (candidate.heldGpuCount + more) / total);
  const shards = candidate.heldPorts.length;
  return shards / (shards + 1);
}

/** Share of GPUs with an HCA of the fabric on their own NUMA node; unknown counts as near. */
function nearHca({ choice, hcas }: Seat): number {
  const near = nearTo(hcas);
  if (choice.gpus.length === 0) return 1;
  return choice.gpus.filter(near).length / choice.gpus.length;
}
