/**
 * Whether a model can run as its profile wants, from what its files say: what would fail after
 * minutes of loading is refused at once. Only what is certain is refused, and what is unknown blocks
 * nothing: an engine knows more tricks than this file.
 */
import {
  addsUpGpus,
  budgetOf,
  cacheMib,
  type CacheRoom,
  cacheRoom,
  contextOf,
  headsProblem,
  type MemoryRequest,
  MIB,
  startNeedMib,
  weightsNeedMib,
} from "./memory.ts";

export interface FitGpu {
  readonly index: number;
  readonly gpuClass: string;
  readonly totalMib?: number;
  readonly usedMib?: number;
  /** As in "9.0". */
  readonly computeCapability?: string;
}

export interface FitRequest extends MemoryRequest {
  readonly gpus: readonly FitGpu[];
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
  const problem = headsProblem(engine, tp, model);
  return problem === undefined ? undefined : refuse("heads_indivisible", problem);
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
  const need = weightsNeedMib(request);
  const totals = totalsOf(request);
  const budget = totals === undefined ? undefined : budgetOf(request, totals);
  if (weightBytes === undefined || need === undefined || budget === undefined || args.offloads) {
    return undefined;
  }
  if (need <= budget.mib) return undefined;
  const overhead = weightsNeedMib({ ...request, weightBytes: 0 }) ?? 0;
  const gpus = Math.ceil(weightBytes / MIB / Math.max(1, budget.mib - overhead));
  return refuse(
    "weights_do_not_fit",
    `The weights take ${Math.ceil(weightBytes / MIB)} MiB, ${need} MiB of each GPU with what an ` +
      `engine needs besides; ${budget.words}. At least ${gpus} such GPUs would hold them (tp × pp), ` +
      "or take a smaller quantisation",
  );
}

function contextFits(request: FitRequest): Misfit | undefined {
  const room = roomOf(request);
  const context = contextOf(request);
  if (room === undefined || context === undefined || context <= room.tokens) return undefined;
  return refuse(
    "context_does_not_fit",
    `A context of ${context} tokens takes ${cacheMib(request, context)} MiB ` +
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
  const room = roomOf(request);
  if (room === undefined || model.contextMax === undefined || model.contextMax <= room.tokens) {
    return undefined;
  }
  return `The model's context of ${model.contextMax} tokens does not fit beside its weights: requests ` +
    `of more than about ${room.tokens} tokens will be refused by the engine. Give --context-length, ` +
    "or use more GPUs";
}

function roomOf(request: FitRequest): CacheRoom | undefined {
  const totals = totalsOf(request);
  return totals === undefined ? undefined : cacheRoom(request, totals);
}

// One that is not known could be smaller than the others.
function totalsOf({ gpus }: FitRequest): readonly number[] | undefined {
  const totals = gpus.flatMap(({ totalMib }) => totalMib ?? []);
  return totals.length < gpus.length ? undefined : totals;
}

function free(request: FitRequest): Misfit | undefined {
  if (request.args.offloads) return undefined;
  if (request.engine === "vllm") return shareFree(request);
  if (addsUpGpus(request.engine)) return allFree(request);
  return request.engine === "sglang" ? eachFree(request) : undefined;
}

// vLLM starts only where all that it may use is free.
function shareFree({ gpus, args }: FitRequest): Misfit | undefined {
  const share = args.memoryShare ?? OLDER_SHARE;
  for (const { index, totalMib, usedMib } of gpus) {
    if (totalMib === undefined || usedMib === undefined) continue;
    const has = totalMib - usedMib;
    const want = share * totalMib;
    if (has >= want) continue;
    return taken(
      `GPU ${index} has ${has} of ${totalMib} MiB free, and vllm wants ${Math.ceil(want)} ` +
        `(--gpu-memory-utilization ${share})`,
      "lower that share",
    );
  }
  return undefined;
}

// The others take what is free, so that it must hold what they cannot do without.
function eachFree(request: FitRequest): Misfit | undefined {
  const need = startNeedMib(request);
  for (const { index, totalMib, usedMib } of request.gpus) {
    if (need === undefined || totalMib === undefined || usedMib === undefined) continue;
    const has = totalMib - usedMib;
    if (has >= need) continue;
    return taken(
      `GPU ${index} has ${has} of ${totalMib} MiB free, and ${request.engine} needs ${need} of each ` +
        "for the weights and what goes with them",
      "use more GPUs",
    );
  }
  return undefined;
}

function allFree(request: FitRequest): Misfit | undefined {
  const need = startNeedMib(request);
  const frees = request.gpus.flatMap(({ totalMib, usedMib }) =>
    totalMib === undefined || usedMib === undefined ? [] : totalMib - usedMib
  );
  const has = frees.reduce((sum, each) => sum + each, 0);
  if (need === undefined || frees.length < request.gpus.length || frees.length === 0) {
    return undefined;
  }
  if (has >= need) return undefined;
  return taken(
    `The GPUs have ${has} MiB free together, and ${request.engine} needs ${need} for the weights and ` +
      "what goes with them",
    "use more GPUs",
  );
}

function taken(what: string, or: string): Misfit {
  return {
    reason: "gpu_memory_taken",
    message: `${what}: end what holds the memory (nvidia-smi names it), or ${or}`,
    permanent: false,
  };
}

function refuse(reason: Misfit["reason"], message: string): Misfit {
  return { reason, message, permanent: true };
}
