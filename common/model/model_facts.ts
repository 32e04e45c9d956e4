/** What a model's own files say about it. What is absent is unknown, and blocks nothing. */

export interface ModelFacts {
  readonly architecture?: string;
  readonly layers?: number;
  readonly heads?: number;
  readonly kvHeads?: number;
  readonly headDim?: number;
  /** Longest context in tokens. */
  readonly contextMax?: number;
  /** "bfloat16", "float16", … */
  readonly dtype?: string;
  /** "fp8", "awq", "gptq", "mxfp4", "nvfp4", … */
  readonly quantization?: string;
  /** Bytes of KV cache that each token of a context takes, in all layers that keep every token. */
  readonly kvBytesPerToken?: number;
  /** Some layers keep the last so many tokens only. With `kvWindowBytesPerToken`, or neither. */
  readonly kvWindow?: number;
  /** Bytes that each of these tokens takes, in all such layers. */
  readonly kvWindowBytesPerToken?: number;
  /** True: each GPU of a tensor-parallel group keeps all of it. */
  readonly kvReplicated?: boolean;
}

/** Two bytes: caches are kept in 16 bits unless a profile says otherwise. */
export const KV_BYTES = 2;

/** Bytes per token of a cache with a key and a value for each head of each layer. */
export function kvBytes(
  of: {
    readonly layers: number | undefined;
    readonly kvHeads: number | undefined;
    readonly headDim: number | undefined;
  },
): number | undefined {
  const { layers, kvHeads, headDim } = of;
  if (layers === undefined || kvHeads === undefined || headDim === undefined) return undefined;
  return 2 * layers * kvHeads * headDim * KV_BYTES;
}

/** A count that can be one: positive, whole, and not absurd. */
export function countOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0 && value < 1e9
    ? value
    : undefined;
}

/** `fields` without those that are undefined. */
export function known<T extends Readonly<Record<string, unknown>>>(
  fields: T,
): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const result: { [K in keyof T]?: Exclude<T[K], undefined> } = {};
  for (const key in fields) {
    const value = fields[key];
    if (isKnown(value)) result[key] = value;
  }
  return result;
}

function isKnown<T>(value: T): value is Exclude<T, undefined> {
  return value !== undefined;
}
