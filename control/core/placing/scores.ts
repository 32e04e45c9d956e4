/** How good a fitting node is. Every score is named and in [0,1]; the weights stand in one place. */
import type { PlaceRequest } from "./fits.ts";
import type { Candidate } from "./candidate.ts";
import { numaShare } from "./gpu_choice.ts";
import type { Seat } from "./seat.ts";
import { weightsNearness } from "./weights.ts";

export type ScoreName = "spread" | "packing" | "nvlink" | "numa" | "fabric" | "weights";
export type Scores = Readonly<Record<ScoreName, number>>;

/**
 * Spread outweighs packing and locality together: replicas of one model share a node only when that
 * is all that stands in the way. A clique outweighs packing: without one, every token pays. Weights
 * that are there already save minutes once, and a worse place costs for as long as a replica lives.
 */
const WEIGHTS: Scores = { spread: 8, nvlink: 3, packing: 2, weights: 1.5, fabric: 1, numa: 0.5 };

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

/** The weighted mean, in [0,1]. */
export function totalScore(scores: Scores): number {
  const names: readonly ScoreName[] = [
    "spread",
    "packing",
    "nvlink",
    "numa",
    "fabric",
    "weights",
  ];
  const sum = names.reduce((total, name) => total + WEIGHTS[name] * scores[name], 0);
  return sum / names.reduce((total, name) => total + WEIGHTS[name], 0);
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
  const numas = new Set(hcas.map((hca) => hca.numaNode));
  if (numas.has(undefined) || choice.gpus.length === 0) return 1;
  const near = choice.gpus.filter((gpu) => gpu.numaNode === undefined || numas.has(gpu.numaNode));
  return near.length / choice.gpus.length;
}
