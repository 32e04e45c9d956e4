/** What is read of well-known families' own files, each number reckoned by hand. */
import { deepEqual, equal } from "node:assert/strict";
import { readGguf } from "./gguf.ts";
import { ggufBytes, LLAMA_8B } from "./gguf_fake.ts";
import { readHfConfig } from "./hf_config.ts";
import { readLaunchArgs } from "./launch_args.ts";
import { cacheMib, cacheRoom, type MemoryRequest } from "./memory.ts";
import type { ModelFacts } from "./model_facts.ts";

type Read = readonly [
  kvBytesPerToken: number | undefined,
  contextMax: number | undefined,
  window?: readonly [tokens: number, bytesPerToken: number],
];

const QWEN3_MOE = {
  architectures: ["Qwen3MoeForCausalLM"],
  ...{ hidden_size: 2048, num_attention_heads: 32, num_key_value_heads: 4, head_dim: 128 },
  ...{ num_hidden_layers: 48, max_position_embeddings: 40_960, rope_scaling: null },
  ...{ max_window_layers: 48, sliding_window: null, use_sliding_window: false },
};
const DEEPSEEK_V3 = {
  architectures: ["DeepseekV3ForCausalLM"],
  ...{ num_attention_heads: 128, num_key_value_heads: 128, hidden_size: 7168 },
  ...{ num_hidden_layers: 61, kv_lora_rank: 512, qk_rope_head_dim: 64, v_head_dim: 128 },
  max_position_embeddings: 163_840,
  rope_scaling: { type: "yarn", factor: 40, original_max_position_embeddings: 4_096 },
};
const GEMMA_3 = {
  ...{ model_type: "gemma3_text", num_attention_heads: 32, num_key_value_heads: 16 },
  ...{ head_dim: 128, hidden_size: 5376, num_hidden_layers: 62, sliding_window: 1_024 },
  rope_scaling: { factor: 8, rope_type: "linear" },
};
const GPT_OSS = {
  architectures: ["GptOssForCausalLM"],
  ...{ num_attention_heads: 64, num_key_value_heads: 8, head_dim: 64, hidden_size: 2880 },
  ...{ num_hidden_layers: 36, sliding_window: 128, max_position_embeddings: 131_072 },
  rope_scaling: { rope_type: "yarn", factor: 32, original_max_position_embeddings: 4_096 },
  layer_types: Array.from(
    { length: 36 },
    (_, index) => index % 2 === 0 ? "sliding_attention" : "full_attention",
  ),
  quantization_config: { quant_method: "mxfp4" },
};
const LLAMA_3 = {
  ...{ hidden_size: 4096, num_attention_heads: 32, num_key_value_heads: 8 },
  ...{ num_hidden_layers: 32, max_position_embeddings: 131_072 },
  rope_scaling: { rope_type: "llama3", factor: 8, original_max_position_embeddings: 8_192 },
};
const QWEN2 = {
  ...{ hidden_size: 3584, num_attention_heads: 28, num_key_value_heads: 4 },
  ...{ num_hidden_layers: 28, max_position_embeddings: 32_768, max_window_layers: 28 },
  ...{ sliding_window: 131_072, use_sliding_window: false },
};
const QWEN3_NEXT = {
  ...{ hidden_size: 2048, num_attention_heads: 16, num_key_value_heads: 2, head_dim: 256 },
  ...{ num_hidden_layers: 48, full_attention_interval: 4, linear_num_key_heads: 16 },
  ...{ linear_conv_kernel_dim: 4, max_position_embeddings: 262_144 },
};

const FAMILIES: Readonly<Record<string, readonly [unknown, Read]>> = {
  "Llama 3.1 8B": [LLAMA_3, [2 * 32 * 8 * 128 * 2, 131_072]],
  "Qwen3 30B-A3B": [QWEN3_MOE, [2 * 48 * 4 * 128 * 2, 40_960]],
  "Qwen2.5 7B": [QWEN2, [2 * 28 * 4 * 128 * 2, 32_768]],
  "Qwen2.5 7B, stretched": [
    {
      ...QWEN2,
      rope_scaling: { type: "yarn", factor: 4, original_max_position_embeddings: 32_768 },
    },
    [57_344, 131_072],
  ],
  "DeepSeek V3": [DEEPSEEK_V3, [61 * (512 + 64) * 2, 163_840]],
  "DeepSeek V3.2": [{ ...DEEPSEEK_V3, index_head_dim: 128 }, [61 * (1_152 + 132), 163_840]],
  "Gemma 3 27B": [
    { architectures: ["Gemma3ForConditionalGeneration"], text_config: GEMMA_3 },
    [10 * 2 * 16 * 128 * 2, undefined, [1_024, 52 * 2 * 16 * 128 * 2]],
  ],
  "Gemma 2 9B": [
    {
      ...{ model_type: "gemma2", num_attention_heads: 16, num_key_value_heads: 8, head_dim: 256 },
      ...{ num_hidden_layers: 42, sliding_window: 4_096, max_position_embeddings: 8_192 },
    },
    [21 * 2 * 8 * 256 * 2, 8_192, [4_096, 21 * 2 * 8 * 256 * 2]],
  ],
  "gpt-oss 120B": [GPT_OSS, [18 * 2 * 8 * 64 * 2, 131_072, [128, 36_864]]],
  "Mixtral 8x7B": [
    { ...LLAMA_3, sliding_window: null, rope_scaling: null, max_position_embeddings: 32_768 },
    [131_072, 32_768],
  ],
  "Phi-4 mini": [
    { ...LLAMA_3, rope_scaling: { type: "longrope" }, sliding_window: 262_144 },
    [131_072, 131_072],
  ],
  "Falcon 7B": [
    { hidden_size: 4544, num_attention_heads: 71, num_hidden_layers: 32, multi_query: true },
    [2 * 32 * 1 * 64 * 2, undefined],
  ],
  "StarCoder": [
    { n_embd: 6144, n_head: 48, n_layer: 40, multi_query: true, n_positions: 8_192 },
    [2 * 40 * 1 * 128 * 2, 8_192],
  ],
  "DBRX": [
    {
      ...{ d_model: 6144, n_heads: 48, n_layers: 40, max_seq_len: 32_768 },
      attn_config: { kv_n_heads: 8, clip_qkv: 8 },
    },
    [2 * 40 * 8 * 128 * 2, 32_768],
  ],
  "Qwen3-Next 80B": [QWEN3_NEXT, [12 * 2 * 2 * 256 * 2, 262_144]],
  "Qwen2.5 Omni": [
    { thinker_config: { text_config: QWEN2, vision_config: { window_size: 112 } } },
    [57_344, 32_768],
  ],
  "a family as it is written today": [
    { ...LLAMA_3, layer_types: Array(32).fill("full_attention"), chunk_size_feed_forward: 0 },
    [131_072, 131_072],
  ],
};

/** Of these it is not certain, so that nothing is said. */
const UNKNOWN: Readonly<Record<string, unknown>> = {
  "Mistral 7B v0.1, all windows": { ...LLAMA_3, sliding_window: 4_096 },
  "Llama 4": { ...LLAMA_3, attention_chunk_size: 8_192, no_rope_layers: [] },
  "Kimi Linear": { ...DEEPSEEK_V3, linear_attn_config: { full_attn_layers: [4] } },
  "Nemotron Super": { ...LLAMA_3, num_key_value_heads: null, block_configs: [{}] },
  "Gemma 3n": {
    ...LLAMA_3,
    num_kv_shared_layers: 15,
    layer_types: Array(32).fill("full_attention"),
  },
  "layers of kinds that nobody knows": { ...GPT_OSS, layer_types: Array(36).fill("new_attention") },
  "fewer kinds than layers": { ...GPT_OSS, layer_types: ["full_attention"] },
  "Whisper": {
    ...{ d_model: 1280, decoder_attention_heads: 20, num_hidden_layers: 32 },
    ...{ is_encoder_decoder: true, max_target_positions: 448 },
  },
  "T5": { d_model: 768, num_heads: 12, num_layers: 12, is_encoder_decoder: true },
  "BERT": { ...LLAMA_3, architectures: ["BertModel"] },
  "a list of heads": { ...LLAMA_3, num_key_value_heads: [8, 4] },
};

Deno.test("readHfConfig() says of well-known families what their caches take", async (t) => {
  for (const [name, [config, [kvBytesPerToken, contextMax, window]]] of Object.entries(FAMILIES)) {
    await t.step(name, () => {
      const facts = factsOf(config);
      equal(facts.kvBytesPerToken, kvBytesPerToken);
      equal(facts.contextMax, contextMax);
      deepEqual(
        [facts.kvWindow, facts.kvWindowBytesPerToken],
        window === undefined ? [undefined, undefined] : [...window],
      );
      equal(facts.kvReplicated, name.startsWith("DeepSeek") || undefined);
    });
  }
});

Deno.test("readHfConfig() says nothing of a cache that it does not know", async (t) => {
  for (const [name, config] of Object.entries(UNKNOWN)) {
    await t.step(name, () => {
      const { kvBytesPerToken, kvWindow } = factsOf(config);
      deepEqual([kvBytesPerToken, kvWindow], [undefined, undefined]);
    });
  }
});

Deno.test("cacheRoom() counts what windows keep once, and no more than they keep", () => {
  const request: MemoryRequest = {
    engine: "vllm",
    tp: 8,
    pp: 1,
    args: readLaunchArgs([]),
    model: factsOf({ text_config: GEMMA_3 }),
    weightBytes: 54e9,
  };
  // Of 24,576 MiB 0.92 are the engine's; an eighth of the weights and 1,024 MiB are taken.
  const mib = 22_609 - (6_438 + 1_024);
  const room = cacheRoom(request, Array(8).fill(24_576));
  equal(room?.mib, mib);
  // An eighth of 81,920 bytes for each token, and of 425,984 for each of the last 1,024.
  equal(room?.tokens, Math.floor((mib * 2 ** 20 - 1_024 * 53_248) / 10_240));
  equal(cacheMib(request, 512), Math.ceil(512 * (10_240 + 53_248) / 2 ** 20));
  equal(cacheMib(request, 8_192), Math.ceil((8_192 * 10_240 + 1_024 * 53_248) / 2 ** 20));
});

Deno.test("readGguf() says nothing of a cache that llama.cpp keeps in another form", () => {
  const of = (more: Readonly<Record<string, number>>, architecture = "llama") => {
    const values = Object.entries({ ...LLAMA_8B, ...more }).map(([key, value]) =>
      [key.replace(/^llama/, architecture), value] as const
    );
    const bytes = ggufBytes({
      ...Object.fromEntries(values),
      "general.architecture": architecture,
    });
    const read = readGguf(bytes);
    return read.kind === "model" ? read.facts.kvBytesPerToken : undefined;
  };
  equal(of({}), 131_072);
  equal(of({}, "qwen3"), 131_072);
  equal(of({ "llama.attention.value_length": 64 }), undefined);
  equal(of({ "llama.attention.shared_kv_layers": 10 }), undefined);
  equal(of({}, "llama4"), undefined);
  equal(of({}, "nomic-bert"), undefined);
});

function factsOf(config: unknown): ModelFacts {
  return readHfConfig(JSON.stringify(config)) ?? {};
}
