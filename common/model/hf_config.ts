/** Reads `config.json` and `model.safetensors.index.json` of a model in Hugging Face's form. */
import { z } from "zod";
import { readCacheLayout } from "./cache_layout.ts";
import { countOf, known, type ModelFacts } from "./model_facts.ts";

const json = z.record(z.string(), z.unknown());
type Config = Readonly<Record<string, unknown>>;

/** Models of several parts keep what concerns us in one of them. */
const NESTED = ["text_config", "llm_config", "language_config", "thinker_config"] as const;
const NESTED_DEEP_MAX = 3;

/** Undefined when it is no JSON object. Never throws. */
export function readHfConfig(text: string): ModelFacts | undefined {
  const top = objectOf(text);
  if (top === undefined) return undefined;
  const config = { ...top, ...innerOf(top, NESTED_DEEP_MAX) };
  const architectures = Array.isArray(top["architectures"]) ? top["architectures"] : [];
  const architecture = textOf(architectures[0]);
  const heads = first(config, ["num_attention_heads", "n_head", "n_heads", "num_heads"]);
  const kvHeads = kvHeadsOf(config, heads);
  const hidden = first(config, ["hidden_size", "n_embd", "d_model"]);
  const headDim = first(config, ["head_dim", "kv_channels"]) ??
    (hidden !== undefined && heads !== undefined ? Math.floor(hidden / heads) : undefined);
  const layers = first(config, ["num_hidden_layers", "n_layer", "n_layers", "num_layers"]);
  const contextMax = contextOf(config);
  return known({
    architecture,
    layers,
    heads,
    kvHeads,
    headDim,
    contextMax,
    dtype: textOf(config["torch_dtype"]) ?? textOf(config["dtype"]),
    quantization: quantizationOf(config["quantization_config"]) ??
      quantizationOf(config["compression_config"]),
    ...readCacheLayout(config, { architecture, layers, kvHeads, headDim, contextMax }),
  });
}

/** The part that concerns us, with the parts within it. */
function innerOf(config: Config, deep: number): Config {
  const inner = NESTED.map((key) => json.safeParse(config[key]).data).find((each) => each);
  if (inner === undefined || deep === 0) return {};
  return { ...inner, ...innerOf(inner, deep - 1) };
}

function kvHeadsOf(config: Config, heads: number | undefined): number | undefined {
  const names = ["num_key_value_heads", "num_kv_heads", "multi_query_group_num"] as const;
  const said = first(config, names) ??
    first(json.safeParse(config["attn_config"]).data ?? {}, ["kv_n_heads"]);
  // Falcon of the old form, and StarCoder: one for all, whatever else stands there.
  if (config["multi_query"] === true && config["new_decoder_architecture"] !== true) return 1;
  // A list for its layers, or a block for each: there is no one number.
  const varies = names.some((name) => typeof config[name] === "object" && config[name] !== null);
  if (varies || Array.isArray(config["block_configs"])) return undefined;
  return said ?? heads;
}

/** Ways to stretch positions after which a model takes so many times more; others say the end itself. */
const STRETCHES: ReadonlySet<unknown> = new Set(["dynamic", "linear", "yarn"]);

// As vLLM reckons it, which insists on it.
function contextOf(config: Config): number | undefined {
  const said = first(config, [
    "model_max_length",
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "max_target_positions",
    "max_sequence_length",
    "max_seq_length",
  ]);
  const rope = json.safeParse(config["rope_scaling"] ?? config["rope_parameters"]).data ?? {};
  const kind = rope["rope_type"] ?? rope["type"];
  const factor = rope["factor"];
  // Gemma 3 gives its context as it is after that.
  const counted = /^gemma3/.test(textOf(config["model_type"]) ?? "");
  if (said === undefined || typeof factor !== "number" || !STRETCHES.has(kind) || counted) {
    return said;
  }
  const from = kind === "yarn" ? countOf(rope["original_max_position_embeddings"]) ?? said : said;
  return countOf(Math.floor(from * factor)) ?? said;
}

function quantizationOf(value: unknown): string | undefined {
  const config = json.safeParse(value).data;
  const method = textOf(config?.["quant_method"])?.toLowerCase();
  if (config === undefined || method === undefined) return undefined;
  // One name for many kinds: the format says which.
  const format = textOf(config["format"])?.toLowerCase() ?? "";
  const algorithm = textOf(config["quant_algo"])?.toLowerCase() ?? "";
  if (/nvfp4/.test(format) || /nvfp4/.test(algorithm)) return "nvfp4";
  if (/fp8|float-quantized/.test(format) || algorithm === "fp8") return "fp8";
  if (/int-quantized/.test(format)) return "w8a8";
  return method;
}

export interface SafetensorsIndex {
  /** Bytes of all tensors. */
  readonly totalBytes?: number;
  /** Names of the files that the tensors are in. */
  readonly files: readonly string[];
}

/** Undefined when it is no index. Never throws. */
export function readSafetensorsIndex(text: string): SafetensorsIndex | undefined {
  const index = objectOf(text);
  const weights = json.safeParse(index?.["weight_map"]).data;
  if (weights === undefined) return undefined;
  const total = json.safeParse(index?.["metadata"]).data?.["total_size"];
  // A name with a slash or ".." would lead out of the model's folder.
  const files = Object.values(weights).flatMap((file) =>
    typeof file === "string" && /^[\w.-]+$/.test(file) && !file.startsWith(".") ? [file] : []
  );
  return {
    files: [...new Set(files)],
    ...(typeof total === "number" && Number.isSafeInteger(total) && total > 0
      ? { totalBytes: total }
      : {}),
  };
}

function objectOf(text: string): Record<string, unknown> | undefined {
  try {
    return json.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

function first(
  config: Readonly<Record<string, unknown>>,
  names: readonly string[],
): number | undefined {
  for (const name of names) {
    const value = countOf(config[name]);
    if (value !== undefined) return value;
  }
  return undefined;
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" && value.length < 200 ? value : undefined;
}
