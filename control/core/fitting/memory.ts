/**
 * What a model takes of each GPU, and how long a context fits beside it, from what its own files say.
 * Estimates for people and for placement; the agent judges again from the files themselves.
 */
import type { Plain } from "@heddle/proto/plain";
import type { SourceFacts } from "@heddle/proto/gen/weights";

const MIB = 2 ** 20;
/** Context, collectives and the first activations take that much of each GPU at least. */
const OVERHEAD_MIB = 1_024;
/** What engines take of a GPU unless told: vLLM's default. */
const SHARE = 0.92;
/** Sizes of a tensor-parallel group within one machine. */
export const SIZES = [1, 2, 4, 8] as const;

export interface GpuNeed {
  readonly tp: number;
  /** Why the model cannot be divided so; empty when it can. */
  readonly problem: string;
  readonly memoryBytes: number;
  /** Of cache for each token on each GPU; undefined: cannot be told. */
  readonly kvBytesPerToken: number | undefined;
}

/** For each size of a group, what each of its GPUs holds. */
export function gpuNeeds(facts: Plain<SourceFacts>): readonly GpuNeed[] {
  return SIZES.map((tp) => gpuNeed(facts, tp));
}

/** Longest context in tokens on GPUs of that memory: 0 when the weights alone do not fit. */
export function contextOn(
  facts: Plain<SourceFacts>,
  need: GpuNeed,
  memoryMib: number,
): number | undefined {
  const room = memoryMib * SHARE * MIB - need.memoryBytes;
  if (facts.weightBytes === undefined || need.problem !== "") return undefined;
  if (room <= 0) return 0;
  if (need.kvBytesPerToken === undefined) return undefined;
  const most = Math.floor(room / need.kvBytesPerToken);
  const longest = facts.model?.contextMax;
  return longest === undefined ? most : Math.min(most, Number(longest));
}

function gpuNeed(facts: Plain<SourceFacts>, tp: number): GpuNeed {
  const { weightBytes = 0n, model } = facts;
  const perToken = model?.kvBytesPerToken;
  const heads = model?.kvHeads ?? tp;
  // Heads cannot be shared out further than there are: beyond that they are kept twice.
  const share = model?.kvReplicated === true ? 1 : 1 / Math.min(tp, heads);
  return {
    tp,
    problem: problemOf(model, tp),
    memoryBytes: Math.ceil(Number(weightBytes) / tp) + OVERHEAD_MIB * MIB,
    kvBytesPerToken: perToken === undefined ? undefined : Math.ceil(Number(perToken) * share),
  };
}

function problemOf(model: Plain<SourceFacts>["model"], tp: number): string {
  const { heads, kvHeads } = model ?? {};
  if (heads !== undefined && heads % tp !== 0) {
    return `its ${heads} attention heads cannot be divided by ${tp}`;
  }
  if (kvHeads !== undefined && kvHeads % tp !== 0 && tp % kvHeads !== 0) {
    return `its ${kvHeads} KV heads and ${tp} do not divide each other`;
  }
  return "";
}
