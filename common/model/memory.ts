/**
 * What a model takes of GPUs, and how long a context fits beside its weights: the one formula for
 * the agent's checks before a launch, for placement, and for what operators ask. Pure. Only what is
 * certain is counted, and what is unknown says nothing: an engine knows more tricks than this file.
 */
import type { LaunchArgs } from "./launch_args.ts";
import { KV_BYTES, type ModelFacts } from "./model_facts.ts";

export interface MemoryRequest {
  readonly engine: string;
  readonly tp: number;
  readonly pp: number;
  readonly args: LaunchArgs;
  readonly model: ModelFacts;
  /** Bytes of all weights as they lie on disk; absent: unknown. */
  readonly weightBytes?: number;
}

export const MIB = 1024 ** 2;
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

/** Whether an engine divides layers over its GPUs, whatever `tp` says, so that their memory adds up. */
export function addsUpGpus(engine: string): boolean {
  return engine === "llamacpp";
}

/**
 * MiB for the weights and what an engine needs besides before its first token: on each GPU, or on
 * all together where their memory adds up. Undefined: the weights' size is unknown.
 */
export function weightsNeedMib({ engine, tp, pp, weightBytes }: MemoryRequest): number | undefined {
  if (weightBytes === undefined) return undefined;
  const parts = addsUpGpus(engine) ? 1 : tp * pp;
  return Math.ceil(weightBytes / MIB / parts) + OVERHEAD_MIB;
}

/** The same, and the whole context that the engine will insist on, where that is certain. */
export function startNeedMib(request: MemoryRequest): number | undefined {
  const weights = weightsNeedMib(request);
  return weights === undefined ? undefined : weights + (cacheNeedMib(request) ?? 0);
}

export interface Budget {
  readonly mib: number;
  /** How it comes about, in a clause. */
  readonly words: string;
}

/** What an engine may use of the smallest GPU, or of all together where their memory adds up. */
export function budgetOf(request: MemoryRequest, totalsMib: readonly number[]): Budget | undefined {
  const { engine, args } = request;
  if (totalsMib.length === 0) return undefined;
  if (addsUpGpus(engine)) {
    const mib = totalsMib.reduce((sum, each) => sum + each, 0);
    return { mib, words: `the GPUs have ${mib} MiB` };
  }
  const smallest = Math.min(...totalsMib);
  if (engine === "sglang" && args.memoryShare === undefined) {
    const leaves = sglangLeavesMib(request);
    const mib = Math.max(0, smallest - leaves);
    return { mib, words: `sglang leaves ${leaves} of a GPU's ${smallest} MiB free at least` };
  }
  const share = shareOf(request);
  if (share === undefined) return undefined;
  const mib = Math.floor(smallest * share);
  return { mib, words: `${share} of a GPU's ${smallest} MiB are ${mib}` };
}

/**
 * MiB that each of `gpuCount` GPUs must have in all, so that `budgetOf` holds the weights and the
 * context that is asked for. Undefined where that cannot be told.
 */
export function gpuNeedMib(request: MemoryRequest, gpuCount: number): number | undefined {
  const { engine, args } = request;
  const need = startNeedMib(request);
  if (need === undefined || args.offloads) return undefined;
  if (addsUpGpus(engine)) return Math.ceil(need / Math.max(1, gpuCount));
  if (engine === "sglang" && args.memoryShare === undefined) return need + sglangLeavesMib(request);
  const share = shareOf(request);
  return share === undefined ? undefined : Math.ceil(need / share);
}

/** The context in tokens that the engine will insist on; undefined: on none. */
export function contextOf({ engine, args, model }: MemoryRequest): number | undefined {
  if (args.contextFitsItself) return undefined;
  if (args.context !== undefined) return args.context;
  // vLLM refuses what it cannot hold, also where nobody asked for it. SGLang starts all the same.
  if (engine === "vllm") return model.contextMax;
  return engine === "llamacpp" ? LLAMACPP_CONTEXT : undefined;
}

export interface CacheRoom {
  /** Tokens that fit beside the weights, 0 or more. */
  readonly tokens: number;
  readonly mib: number;
  readonly words: string;
}

/** Room for the cache on GPUs of those sizes; undefined where it cannot be told. */
export function cacheRoom(
  request: MemoryRequest,
  totalsMib: readonly number[],
): CacheRoom | undefined {
  const weights = weightsNeedMib(request);
  const budget = budgetOf(request, totalsMib);
  const cache = cacheOf(request);
  if (weights === undefined || budget === undefined || cache === undefined) return undefined;
  const mib = Math.max(0, Math.floor(budget.mib - weights));
  return { tokens: tokensIn(cache, mib * MIB), mib, words: budget.words };
}

interface Cache {
  /** Bytes that each token takes where all are kept. */
  readonly perToken: number;
  /** And those that it takes besides while it is among the last `window`. */
  readonly perWindowToken: number;
  readonly window: number;
}

function cacheOf(request: MemoryRequest): Cache | undefined {
  const perToken = cacheBytesPerToken(request);
  if (perToken === undefined) return undefined;
  const { kvBytesPerToken = 1, kvWindowBytesPerToken = 0, kvWindow = 0 } = request.model;
  // They are kept and shared out like the others.
  const perWindowToken = kvWindowBytesPerToken * (perToken / kvBytesPerToken);
  return { perToken, perWindowToken, window: kvWindow };
}

function tokensIn({ perToken, perWindowToken, window }: Cache, bytes: number): number {
  const within = Math.floor(bytes / (perToken + perWindowToken));
  return within <= window ? within : Math.floor((bytes - perWindowToken * window) / perToken);
}

/** MiB of cache for a context, on each GPU or on all together. Undefined: cannot be told. */
export function cacheMib(request: MemoryRequest, context: number): number | undefined {
  const cache = cacheOf(request);
  if (cache === undefined) return undefined;
  const { perToken, perWindowToken, window } = cache;
  return Math.ceil((context * perToken + Math.min(context, window) * perWindowToken) / MIB);
}

/**
 * Bytes of cache that a token takes of each GPU, or of all together where their memory adds up,
 * however long the context: what it takes of layers with windows is not in it.
 */
export function cacheBytesPerToken(
  { engine, tp, pp, args, model }: MemoryRequest,
): number | undefined {
  const { kvBytesPerToken, kvHeads = tp, kvReplicated } = model;
  if (kvBytesPerToken === undefined || args.offloads || args.dividesCache) return undefined;
  // Heads cannot be shared out further than there are: beyond that they are kept twice.
  const share = addsUpGpus(engine)
    ? 1
    : (kvReplicated === true ? 1 : 1 / Math.min(tp, kvHeads)) / pp;
  return kvBytesPerToken * ((args.kvBytes ?? KV_BYTES) / KV_BYTES) * share;
}

function cacheNeedMib(request: MemoryRequest): number | undefined {
  const context = contextOf(request);
  return context === undefined ? undefined : cacheMib(request, context);
}

function sglangLeavesMib({ tp, pp }: MemoryRequest): number {
  return SGLANG_LEAVES_MIB + SGLANG_LEAVES_PER_GPU_MIB * tp * pp;
}

function shareOf({ engine, args }: MemoryRequest): number | undefined {
  return args.memoryShare ?? (engine === "vllm" ? VLLM_SHARE : undefined);
}

/** Why a tensor-parallel group of that size cannot share the model's heads; undefined: it can. */
export function headsProblem(
  engine: string,
  tp: number,
  { heads, kvHeads }: ModelFacts,
): string | undefined {
  if (addsUpGpus(engine) || tp <= 1) return undefined;
  if (heads !== undefined && heads % tp !== 0) {
    return `the model's ${heads} attention heads cannot be divided by tp ${tp}; tp can be ${
      divisors(heads).join(", ")
    }`;
  }
  if (kvHeads === undefined || dividesEither(kvHeads, tp)) return undefined;
  const fitting = divisors(heads ?? kvHeads).filter((each) => dividesEither(kvHeads, each));
  return `the model's ${kvHeads} KV heads and tp ${tp} do not divide each other; tp can be ${
    fitting.join(", ")
  }`;
}

function dividesEither(a: number, b: number): boolean {
  return a % b === 0 || b % a === 0;
}

/** Of a number, as far as groups go. */
function divisors(of: number): readonly number[] {
  return Array.from({ length: 64 }, (_, index) => index + 1).filter((each) => of % each === 0);
}
