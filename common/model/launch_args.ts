/** What a profile's own arguments say about memory, of the engines that we know. */

export interface LaunchArgs {
  /** Context in tokens; undefined: not said. */
  readonly context?: number;
  /** The engine fits its context to the memory that it finds. */
  readonly contextFitsItself: boolean;
  /** The cache is divided over the GPUs in another way than by tensor parallelism. */
  readonly dividesCache: boolean;
  /** Share of each GPU's memory that the engine may use. */
  readonly memoryShare?: number;
  readonly dtype?: string;
  readonly quantization?: string;
  /** Bytes of one number in the KV cache, where it is said. */
  readonly kvBytes?: number;
  /** Weights or cache may lie elsewhere than on the GPUs, or are changed while they are loaded. */
  readonly offloads: boolean;
}

const OFFLOADS =
  /^(?:--cpu-offload-gb|--swap-space|--kv-cache-memory-bytes|--quantization|-q|--torchao-config|--load-format|--enable-hierarchical-cache|-ngl|--gpu-layers|--n-gpu-layers|--n-cpu-moe|--cpu-moe|-ot|--override-tensor|-ctk|-ctv|--cache-type-k|--cache-type-v|--rpc)(?:=|$)/;

const DIVIDES_CACHE =
  /^(?:--enable-dp-attention|--attn-dp-size|--attn-cp-size|--dcp-size|--attention-context-parallel-size|--decode-context-parallel-size|-dcp|--prefill-context-parallel-size|-pcp|--enable-prefill-context-parallel)(?:=|$)/;

/** The last word on each counts, as engines have it. Never throws. */
export function readLaunchArgs(args: readonly string[]): LaunchArgs {
  const value = (...flags: string[]) => {
    let found: string | undefined;
    args.forEach((arg, index) => {
      const flag = flags.find((each) => arg === each || arg.startsWith(`${each}=`));
      if (flag === undefined) return;
      found = arg === flag ? args[index + 1] : arg.slice(flag.length + 1);
    });
    return found;
  };
  const length = value("--max-model-len", "--context-length", "-c", "--ctx-size");
  const context = tokens(length);
  const share = Number(value("--gpu-memory-utilization", "--mem-fraction-static") ?? NaN);
  const dtype = value("--dtype");
  const quantization = value("--quantization", "-q");
  const kvDtype = value("--kv-cache-dtype");
  return {
    offloads: args.some((arg) => OFFLOADS.test(arg)),
    dividesCache: args.some((arg) => DIVIDES_CACHE.test(arg)),
    // Anything that is said and is no number of tokens: "auto", -1, or 0 for the model's own.
    contextFitsItself: length !== undefined && context === undefined,
    ...(context === undefined ? {} : { context }),
    ...(share > 0 && share <= 1 ? { memoryShare: share } : {}),
    ...(dtype === undefined ? {} : { dtype }),
    ...(quantization === undefined ? {} : { quantization }),
    ...(kvDtype === undefined || kvDtype === "auto"
      ? {}
      : { kvBytes: /fp8|int8|fp4/.test(kvDtype) ? 1 : 2 }),
  };
}

// vLLM reads 32k as 32,000 and 32K as 32,768; 0 and "auto" say nothing.
function tokens(text: string | undefined): number | undefined {
  const [, digits, unit = ""] = /^(\d+(?:\.\d+)?)([kKmM]?)$/.exec(text ?? "") ?? [];
  if (digits === undefined) return undefined;
  const factor = { k: 1_000, K: 1_024, m: 1_000_000, M: 1_048_576 }[unit] ?? 1;
  const count = Math.floor(Number(digits) * factor);
  return count > 0 ? count : undefined;
}
