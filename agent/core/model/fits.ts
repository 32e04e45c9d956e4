/**
 * Whether a model can run as its profile wants, from what its files say: what would fail after
 * minutes of loading is refused at once. Only what is certain is refused, and what is unknown blocks
 * nothing: an engine knows more tricks than this file.
 */
import type { LaunchArgs } from "./launch_args.ts";
import { KV_BYTES, type ModelFacts } from "./model_facts.ts";

export interface FitGpu {
  readonly index: number;
  readonly gpuClass: string;
  readonly totalMib?: number;
  readonly usedMib?: number;
  /** As in "9.0". */
  readonly computeCapability?: string;
}

export interface FitRequest {
  readonly engine: string;
  readonly tp: number;
  readonly pp: number;
  readonly gpus: readonly FitGpu[];
  readonly args: LaunchArgs;
  readonly model: ModelFacts;
  /** Bytes of all weights as they lie on disk. */
  readonly weightBytes?: number;
}

export interface Misfit {
  readonly reason:
    | "context_does_not_fit"
    | "gpu_memory_taken"
    | "gpu_too_old"
    | "gpus_not_uniform"
    | "heads_indivisible"
    | "weights_do_not_fit";
  readonly message: string;
  readonly permanent: boolean;
}

type Fit = (request: FitRequest) => Misfit | undefined;

const MIB = 1024 ** 2;
/** CUDA's context, NCCL's buffers and the first activations take this much of each GPU at least. */
const OVERHEAD_MIB = 1_024;
/** What vLLM takes of a GPU unless told. */
const VLLM_SHARE = 0.92;
/**
 * SGLang reckons its share by what it leaves free, and each version leaves more or less: so much at
 * least, and so much more for each GPU of a replica.
 */
const SGLANG_LEAVES_MIB = 1_536;
const SGLANG_LEAVES_PER_GPU_MIB = 128;
/** What the adapter gives llama.cpp when the profile says nothing. */
const LLAMACPP_CONTEXT = 4_096;

/** vLLM's default until 2026: what an older one is content with is not refused. */
const OLDER_SHARE = 0.9;

/** Cheapest first. */
const FITS: readonly Fit[] = [uniform, divisible, capable, weightsFit, contextFits, free];

/** The first thing that cannot work; undefined when nothing is known to be wrong. Never throws. */
export function misfit(request: FitRequest): Misfit | undefined {
  for (const fit of FITS) {
    const found = fit(request);
    if (found !== undefined) return found;
  }
  return undefined;
}

function uniform({ gpus }: FitRequest): Misfit | undefined {
  const known = gpus.filter(({ gpuClass }) => gpuClass !== "");
  const [first] = known;
  const other = known.find(({ gpuClass }) => gpuClass !== first?.gpuClass);
  if (first === undefined || other === undefined) return undefined;
  return refuse(
    "gpus_not_uniform",
    `GPU ${first.index} is ${first.gpuClass} and GPU ${other.index} is ${other.gpuClass}: the GPUs ` +
      "of a replica must be of one class",
  );
}

function divisible({ engine, tp, model }: FitRequest): Misfit | undefined {
  if (engine === "llamacpp" || tp <= 1) return undefined;
  const { heads, kvHeads } = model;
  if (heads !== undefined && heads % tp !== 0) {
    return refuse(
      "heads_indivisible",
      `The model's ${heads} attention heads cannot be divided by tp ${tp}; tp can be ${
        divisors(heads, 64).join(", ")
      }`,
    );
  }
  if (kvHeads !== undefined && kvHeads % tp !== 0 && tp % kvHeads !== 0) {
    const fitting = divisors(heads ?? kvHeads, 64).filter((each) =>
      kvHeads % each === 0 || each % kvHeads === 0
    );
    return refuse(
      "heads_indivisible",
      `The model's ${kvHeads} KV heads and tp ${tp} do not divide each other; tp can be ${
        fitting.join(", ")
      }`,
    );
  }
  return undefined;
}

/** Least compute capability by quantisation, for any of an engine's kernels. */
const LEAST: Readonly<Record<string, number | Readonly<Record<string, number>>>> = {
  awq: 7.5,
  gptq: 7.0,
  fp8: 8.0,
  fbgemm_fp8: 8.0,
  w8a8: 7.5,
  mxfp4: { vllm: 8.0, sglang: 9.0 },
  nvfp4: { vllm: 8.0, sglang: 7.5 },
};

function capable({ engine, gpus, model, args }: FitRequest): Misfit | undefined {
  if (engine !== "vllm" && engine !== "sglang") return undefined;
  const name = args.quantization ?? model.quantization ?? "";
  const entry = LEAST[name];
  const ofQuantization = typeof entry === "object" ? entry[engine] : entry;
  const ofDtype = args.dtype === "bfloat16" ? 8.0 : undefined;
  for (const { index, computeCapability } of gpus) {
    const has = Number(computeCapability ?? NaN);
    if (ofQuantization !== undefined && has < ofQuantization) {
      return refuse(
        "gpu_too_old",
        `The model's quantisation ${name} needs compute capability ${
          ofQuantization.toFixed(1)
        } with ` +
          `${engine}; GPU ${index} has ${computeCapability}. Take another quantisation, or a newer ` +
          "GPU class",
      );
    }
    if (ofDtype !== undefined && has < ofDtype) {
      return refuse(
        "gpu_too_old",
        `--dtype bfloat16 needs compute capability 8.0; GPU ${index} has ${computeCapability}. ` +
          "Give --dtype half",
      );
    }
  }
  return undefined;
}

function weightsFit(request: FitRequest): Misfit | undefined {
  const { weightBytes, args } = request;
  const budget = budgetMib(request);
  if (weightBytes === undefined || budget === undefined || args.offloads) return undefined;
  const need = weightsMib(request, weightBytes) + OVERHEAD_MIB;
  if (need <= budget.mib) return undefined;
  const gpus = Math.ceil(weightBytes / MIB / Math.max(1, budget.mib - OVERHEAD_MIB));
  return refuse(
    "weights_do_not_fit",
    `The weights take ${Math.ceil(weightBytes / MIB)} MiB, ${need} MiB of each GPU with what an ` +
      `engine needs besides; ${budget.words}. At least ${gpus} such GPUs would hold them (tp × pp), ` +
      "or take a smaller quantisation",
  );
}

function contextFits(request: FitRequest): Misfit | undefined {
  const room = cacheRoom(request);
  const context = contextOf(request);
  if (room === undefined || context === undefined || context <= room.tokens) return undefined;
  return refuse(
    "context_does_not_fit",
    `A context of ${context} tokens takes ${Math.ceil(context * room.bytesPerToken / MIB)} MiB ` +
      `of KV cache on each GPU, and beside the weights ${room.mib} MiB are left (${room.words}). ` +
      `At most ${room.tokens} tokens fit: shorten it, or use more GPUs`,
  );
}

/**
 * What SGLang will do in silence: it starts with a cache that its model's own context does not fit
 * into, and refuses the long requests one by one. Undefined when there is nothing to say.
 */
export function contextWarning(request: FitRequest): string | undefined {
  const { engine, args, model } = request;
  if (engine !== "sglang" || args.context !== undefined || args.contextFitsItself) return undefined;
  const room = cacheRoom(request);
  if (room === undefined || model.contextMax === undefined || model.contextMax <= room.tokens) {
    return undefined;
  }
  return `The model's context of ${model.contextMax} tokens does not fit beside its weights: requests ` +
    `of more than about ${room.tokens} tokens will be refused by the engine. Give --context-length, ` +
    "or use more GPUs";
}

// vLLM refuses what it cannot hold, also where nobody asked for it. SGLang starts all the same.
function contextOf({ engine, args, model }: FitRequest): number | undefined {
  if (args.contextFitsItself) return undefined;
  if (args.context !== undefined) return args.context;
  if (engine === "vllm") return model.contextMax;
  return engine === "llamacpp" ? LLAMACPP_CONTEXT : undefined;
}

interface CacheRoom {
  /** Tokens that fit beside the weights, 0 or more. */
  readonly tokens: number;
  readonly mib: number;
  readonly bytesPerToken: number;
  readonly words: string;
}

function cacheRoom(request: FitRequest): CacheRoom | undefined {
  const { engine, weightBytes, model, args, tp, pp } = request;
  const budget = budgetMib(request);
  const perToken = model.kvBytesPerToken;
  if (
    weightBytes === undefined || budget === undefined || perToken === undefined ||
    args.offloads || args.dividesCache
  ) return undefined;
  // llama.cpp's budget is that of all its GPUs together, and so is its cache.
  const heads = model.kvHeads ?? tp;
  const share = engine === "llamacpp"
    ? 1
    : (model.kvReplicated === true ? 1 : 1 / Math.min(tp, heads)) / pp;
  const bytesPerToken = perToken * ((args.kvBytes ?? KV_BYTES) / KV_BYTES) * share;
  const mib = Math.max(0, Math.floor(budget.mib - weightsMib(request, weightBytes) - OVERHEAD_MIB));
  return {
    tokens: Math.floor(mib * MIB / bytesPerToken),
    mib,
    bytesPerToken,
    words: budget.words,
  };
}

// vLLM starts only where all that it may use is free.
function free({ engine, gpus, args }: FitRequest): Misfit | undefined {
  if (engine !== "vllm" || args.offloads) return undefined;
  const share = args.memoryShare ?? OLDER_SHARE;
  const taken = gpus.find(({ totalMib, usedMib }) =>
    totalMib !== undefined && usedMib !== undefined && totalMib - usedMib < share * totalMib
  );
  if (taken === undefined) return undefined;
  const { index, totalMib = 0, usedMib = 0 } = taken;
  return {
    reason: "gpu_memory_taken",
    message: `GPU ${index} has ${totalMib - usedMib} of ${totalMib} MiB free, and vllm wants ` +
      `${Math.ceil(share * totalMib)} (--gpu-memory-utilization ${share}): end what holds its ` +
      "memory (nvidia-smi names it), or lower that share",
    permanent: false,
  };
}

function weightsMib({ engine, tp, pp }: FitRequest, weightBytes: number): number {
  // llama.cpp divides layers over its GPUs, whatever tp says.
  return Math.ceil(weightBytes / MIB / (engine === "llamacpp" ? 1 : tp * pp));
}

// What the smallest GPU offers; all of them together for llama.cpp.
function budgetMib(
  { engine, gpus, args, tp, pp }: FitRequest,
): { readonly mib: number; readonly words: string } | undefined {
  const totals = gpus.flatMap(({ totalMib }) => totalMib ?? []);
  if (totals.length === 0 || totals.length < gpus.length) return undefined;
  if (engine === "llamacpp") {
    const mib = totals.reduce((sum, each) => sum + each, 0);
    return { mib, words: `the GPUs have ${mib} MiB` };
  }
  const smallest = Math.min(...totals);
  if (engine === "sglang" && args.memoryShare === undefined) {
    const leaves = SGLANG_LEAVES_MIB + SGLANG_LEAVES_PER_GPU_MIB * tp * pp;
    const mib = Math.max(0, smallest - leaves);
    return { mib, words: `sglang leaves ${leaves} of a GPU's ${smallest} MiB free at least` };
  }
  const share = args.memoryShare ?? (engine === "vllm" ? VLLM_SHARE : undefined);
  if (share === undefined) return undefined;
  const mib = Math.floor(smallest * share);
  return { mib, words: `${share} of a GPU's ${smallest} MiB are ${mib}` };
}

function divisors(of: number, max: number): readonly number[] {
  return Array.from({ length: max }, (_, index) => index + 1).filter((each) => of % each === 0);
}

function refuse(reason: Misfit["reason"], message: string): Misfit {
  return { reason, message, permanent: true };
}
