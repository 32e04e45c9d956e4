/**
 * What a token takes of the KV cache, from a `config.json`: of layers that keep every token, and of
 * layers that keep the last ones only. Only what is certain is said: other ways of saving memory than
 * these need less than they seem to, and what they need is left unknown.
 */
import { countOf, kvBytes, type ModelFacts } from "./model_facts.ts";

type Config = Readonly<Record<string, unknown>>;

export interface Shape {
  readonly architecture: string | undefined;
  readonly layers: number | undefined;
  readonly kvHeads: number | undefined;
  readonly headDim: number | undefined;
  readonly contextMax: number | undefined;
}

type CacheFacts = Pick<
  ModelFacts,
  "kvBytesPerToken" | "kvReplicated" | "kvWindow" | "kvWindowBytesPerToken"
>;

/** Layers share a cache, differ in their heads, or keep it in a form of their own. */
const IRREGULAR =
  /num_kv_shared_layers|block_configs|swa_|global_head_dim|num_global_key_value|attention_other|compress_ratio|cross_attention|hybrid|rwkv|recurrent/;
/** Some layers keep a window or a state; `layer_types` says which, where it is there. */
const MIXED = /sliding|window|layer_types|mamba|ssm|linear_|attention_chunk/;
/** Layers that keep a state of fixed size in the place of tokens. */
const STATES: ReadonlySet<unknown> = new Set(["conv", "linear_attention", "mamba"]);
const FULL: ReadonlySet<unknown> = new Set(["attention", "full_attention"]);
/** Bytes of a scale, one for each so many numbers of an indexer's key, which has a byte each. */
const INDEX_SCALE = { bytes: 4, numbers: 128 } as const;

/** Nothing where it is not certain. Never throws. */
export function readCacheLayout(config: Config, shape: Shape): CacheFacts {
  const layers = layersOf(config, shape);
  if (layers === undefined) return {};
  const latent = latentBytes(config);
  const each = latent ?? kvBytes({ ...shape, layers: 1 });
  if (each === undefined || (latent === undefined && otherValues(config, shape))) return {};
  return {
    kvBytesPerToken: layers.full * each,
    ...(latent === undefined ? {} : { kvReplicated: true }),
    ...(layers.windowed === 0
      ? {}
      : { kvWindow: layers.window, kvWindowBytesPerToken: layers.windowed * each }),
  };
}

interface Layers {
  /** Layers that keep every token. */
  readonly full: number;
  readonly windowed: number;
  readonly window: number;
}

function layersOf(config: Config, shape: Shape): Layers | undefined {
  const { layers, contextMax = Infinity } = shape;
  if (layers === undefined || config["is_encoder_decoder"] === true || encodes(shape)) {
    return undefined;
  }
  if (marks(config, IRREGULAR).length > 0) return undefined;
  const window = config["use_sliding_window"] === false
    ? undefined
    : countOf(config["sliding_window"]);
  const windows = window !== undefined && window < contextMax ? window : undefined;
  const kinds = config["layer_types"];
  if (Array.isArray(kinds) && kinds.length > 0) return ofKinds(kinds, layers, windows);
  // A window that is wider than any context, or switched off, is none.
  const mixed = marks(config, MIXED).filter((key) =>
    windows !== undefined || !/sliding|window/.test(key)
  );
  if (mixed.length === 0) return { full: layers, windowed: 0, window: 0 };
  const interval = countOf(config["full_attention_interval"]);
  if (interval !== undefined && mixed.every((key) => key.startsWith("linear_"))) {
    return demandFull({ full: Math.floor(layers / interval), windowed: 0, window: 0 });
  }
  const full = windows === undefined ? undefined : fullByRule(config, layers);
  if (windows === undefined || full === undefined || mixed.some((key) => !/sliding/.test(key))) {
    return undefined;
  }
  return demandFull({ full, windowed: layers - full, window: windows });
}

function ofKinds(
  kinds: readonly unknown[],
  layers: number,
  window: number | undefined,
): Layers | undefined {
  if (kinds.length !== layers) return undefined;
  const full = kinds.filter((kind) => FULL.has(kind)).length;
  const states = kinds.filter((kind) => STATES.has(kind)).length;
  const windowed = kinds.filter((kind) => kind === "sliding_attention").length;
  if (full + states + windowed !== layers) return undefined;
  return window === undefined
    ? demandFull({ full: full + windowed, windowed: 0, window: 0 })
    : demandFull({ full, windowed, window });
}

// A cache that does not grow with the context has no longest one to tell.
function demandFull(layers: Layers): Layers | undefined {
  return layers.full > 0 ? layers : undefined;
}

/** Every so many layers one keeps all, by what families had before `layer_types` was written down. */
function fullByRule(config: Config, layers: number): number | undefined {
  const family = config["model_type"];
  const said = config["sliding_window_pattern"] ?? config["_sliding_window_pattern"];
  const every = countOf(said) ??
    (said !== undefined
      ? undefined
      : family === "gemma2"
      ? 2
      : family === "gemma3_text"
      ? 6
      : undefined);
  return every === undefined ? undefined : Math.floor(layers / every);
}

// Keys that say something; what is off, empty or nought says nothing.
function marks(config: Config, of: RegExp): readonly string[] {
  return Object.keys(config).filter((key) => {
    const value = config[key];
    const empty = value === null || value === false || value === 0 || value === "" ||
      (Array.isArray(value) && value.length === 0);
    return of.test(key) && key !== "use_sliding_window" && !empty;
  });
}

/** Compressed keys and values of one token in one layer, and an indexer's key where there is one. */
function latentBytes(config: Config): number | undefined {
  const rank = countOf(config["kv_lora_rank"]);
  const rope = countOf(config["qk_rope_head_dim"]);
  if (rank === undefined || rope === undefined) return undefined;
  const index = countOf(config["index_head_dim"]) ?? 0;
  return (rank + rope) * 2 + index + Math.ceil(index / INDEX_SCALE.numbers) * INDEX_SCALE.bytes;
}

// Engines differ in how they keep values that are narrower than keys.
function otherValues(config: Config, { headDim }: Shape): boolean {
  const values = countOf(config["v_head_dim"]);
  return values !== undefined && values !== headDim;
}

function encodes({ architecture = "" }: Shape): boolean {
  return /bert|roberta/i.test(architecture);
}
