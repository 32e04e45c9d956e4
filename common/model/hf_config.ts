/** Reads `config.json` and `model.safetensors.index.json` of a model in Hugging Face's form. */
import { z } from "zod";
import { countOf, known, kvBytes, type ModelFacts } from "./model_facts.ts";

const json = z.record(z.string(), z.unknown());

/** Models of several parts keep what concerns us in one of them. */
const NESTED = ["text_config", "llm_config", "language_config", "thinker_config"] as const;

/** Undefined when it is no JSON object. Never throws. */
export function readHfConfig(text: string): ModelFacts | undefined {
  const top = objectOf(text);
  if (top === undefined) return undefined;
  const inner = NESTED.map((key) => json.safeParse(top[key]).data).find((each) => each) ?? {};
  const config = { ...top, ...inner };
  const architectures = Array.isArray(top["architectures"]) ? top["architectures"] : [];
  const heads = first(config, ["num_attention_heads", "n_head", "num_heads"]);
  const kvHeads = first(config, ["num_key_value_heads", "num_kv_heads", "multi_query_group_num"]) ??
    heads;
  const hidden = first(config, ["hidden_size", "n_embd", "d_model"]);
  const headDim = first(config, ["head_dim"]) ??
    (hidden !== undefined && heads !== undefined ? Math.floor(hidden / heads) : undefined);
  const layers = first(config, ["num_hidden_layers", "n_layer", "num_layers"]);
  return known({
    architecture: textOf(architectures[0]),
    layers,
    heads,
    kvHeads,
    headDim,
    contextMax: first(config, ["max_position_embeddings", "n_positions", "max_sequence_length"]),
    dtype: textOf(config["torch_dtype"]) ?? textOf(config["dtype"]),
    quantization: quantizationOf(config["quantization_config"]) ??
      quantizationOf(config["compression_config"]),
    ...cacheOf(config, { layers, kvHeads, headDim }),
  });
}

// Only what is certain: windows, states and mixtures of layers need less than they seem to.
function cacheOf(
  config: Readonly<Record<string, unknown>>,
  plain: Parameters<typeof kvBytes>[0],
): Pick<ModelFacts, "kvBytesPerToken" | "kvReplicated"> {
  const rank = countOf(config["kv_lora_rank"]);
  const rope = countOf(config["qk_rope_head_dim"]);
  if (rank !== undefined && rope !== undefined && plain.layers !== undefined) {
    return { kvBytesPerToken: plain.layers * (rank + rope) * 2, kvReplicated: true };
  }
  const uncertain = Object.keys(config).some((key) =>
    /sliding|window|layer_types|mamba|ssm|linear_|recurrent|rwkv|cross_attention|hybrid|chunk/
      .test(key) && config[key] !== null && config[key] !== false
  );
  const bytes = uncertain ? undefined : kvBytes(plain);
  return bytes === undefined ? {} : { kvBytesPerToken: bytes };
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
