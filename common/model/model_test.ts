import { deepEqual, equal, match, ok } from "node:assert/strict";
import { contextWarning, type FitRequest, misfit } from "./fits.ts";
import { readGguf } from "./gguf.ts";
import { ggufBytes, LLAMA_8B } from "./gguf_fake.ts";
import { readHfConfig, readSafetensorsIndex } from "./hf_config.ts";
import { readLaunchArgs } from "./launch_args.ts";

const LLAMA_70B = {
  architectures: ["LlamaForCausalLM"],
  hidden_size: 8192,
  num_attention_heads: 64,
  num_hidden_layers: 80,
  num_key_value_heads: 8,
  max_position_embeddings: 131_072,
  torch_dtype: "bfloat16",
};
const GIB = 1024 ** 3;

function factsOf(config: unknown) {
  return readHfConfig(JSON.stringify(config)) ?? {};
}

Deno.test("readHfConfig() reads sizes, also of a model within a model", () => {
  const facts = factsOf(LLAMA_70B);
  deepEqual(facts, {
    architecture: "LlamaForCausalLM",
    layers: 80,
    heads: 64,
    kvHeads: 8,
    headDim: 128,
    contextMax: 131_072,
    dtype: "bfloat16",
    kvBytesPerToken: 2 * 80 * 8 * 128 * 2,
  });
  const nested = factsOf({ architectures: ["X"], text_config: LLAMA_70B });
  deepEqual([nested.architecture, nested.heads], ["X", 64]);
  const deepseek = factsOf({ num_hidden_layers: 61, kv_lora_rank: 512, qk_rope_head_dim: 64 });
  deepEqual([deepseek.kvBytesPerToken, deepseek.kvReplicated], [61 * 576 * 2, true]);
  const windows = factsOf({ ...LLAMA_70B, sliding_window: 4096 });
  equal(windows.kvBytesPerToken, undefined, "windows need less, so nothing is said");
  equal(factsOf({ ...LLAMA_70B, sliding_window: null }).kvBytesPerToken, 327_680);
});

Deno.test("readHfConfig() names a quantisation by what it is", () => {
  const of = (config: unknown) => factsOf({ quantization_config: config }).quantization;
  equal(of({ quant_method: "fp8", weight_block_size: [128, 128] }), "fp8");
  equal(of({ quant_method: "compressed-tensors", format: "nvfp4-pack-quantized" }), "nvfp4");
  equal(of({ quant_method: "compressed-tensors", format: "float-quantized" }), "fp8");
  equal(of({ quant_method: "compressed-tensors", format: "int-quantized" }), "w8a8");
  equal(of({ quant_method: "modelopt", quant_algo: "NVFP4" }), "nvfp4");
  equal(of({ quant_method: "mxfp4" }), "mxfp4");
  equal(of(undefined), undefined);
});

Deno.test("readSafetensorsIndex() gives the files once each, and none outside the folder", () => {
  const weight_map = { a: "m-1.safetensors", b: "m-1.safetensors", c: "../../etc/x", d: 7 };
  deepEqual(
    readSafetensorsIndex(JSON.stringify({ metadata: { total_size: 9 }, weight_map })),
    { files: ["m-1.safetensors"], totalBytes: 9 },
  );
  equal(readSafetensorsIndex("version https://git-lfs"), undefined);
});

Deno.test("readGguf() reads the sizes, as far as its bytes go, and says what is no GGUF", () => {
  const whole = ggufBytes(LLAMA_8B);
  const read = readGguf(whole);
  deepEqual(read, {
    kind: "model",
    facts: {
      architecture: "llama",
      layers: 32,
      heads: 32,
      kvHeads: 8,
      headDim: 128,
      contextMax: 131_072,
      kvBytesPerToken: 2 * 32 * 8 * 128 * 2,
    },
  });
  deepEqual(readGguf(whole.subarray(0, whole.length - 10)), read, "its tokens are not needed");
  const text = (words: string) => readGguf(new TextEncoder().encode(words));
  const pointer = text("version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 2\n");
  ok(pointer.kind === "not_gguf");
  match(pointer.why, /Git LFS pointer/);
  equal(text("").kind, "not_gguf");
  equal(text("GGUF").kind, "not_gguf");
});

Deno.test("readLaunchArgs() takes the last word on each, in both spellings", () => {
  const args = readLaunchArgs(["--max-model-len", "8k", "--max-model-len=32K", "--dtype", "half"]);
  deepEqual(args, {
    context: 32_768,
    dtype: "half",
    offloads: false,
    dividesCache: false,
    contextFitsItself: false,
  });
  equal(readLaunchArgs(["--max-model-len", "auto"]).contextFitsItself, true);
  equal(readLaunchArgs(["--max-model-len=-1"]).contextFitsItself, true);
  equal(readLaunchArgs(["--enable-dp-attention"]).dividesCache, true);
  equal(readLaunchArgs(["--gpu-memory-utilization=0.5"]).memoryShare, 0.5);
  equal(readLaunchArgs(["--cpu-offload-gb", "10"]).offloads, true);
  equal(readLaunchArgs(["-c", "0"]).context, undefined);
  equal(readLaunchArgs(["--max-model-len"]).context, undefined);
});

function request(changes: Partial<FitRequest> & { readonly gpuCount?: number } = {}): FitRequest {
  const { gpuCount = 8, ...rest } = changes;
  return {
    engine: "vllm",
    tp: gpuCount,
    pp: 1,
    gpus: Array.from({ length: gpuCount }, (_, index) => ({
      index,
      gpuClass: "h100-80g",
      totalMib: 81_559,
      usedMib: 4,
      computeCapability: "9.0",
    })),
    args: readLaunchArgs([]),
    model: factsOf(LLAMA_70B),
    weightBytes: 141 * GIB,
    ...rest,
  };
}

function refused(changes: Parameters<typeof request>[0]): { reason: string; message: string } {
  return misfit(request(changes)) ?? { reason: "", message: "" };
}

Deno.test("misfit() passes what runs, and what it knows nothing of", () => {
  equal(misfit(request()), undefined);
  equal(misfit(request({ model: {}, gpus: [] })), undefined);
  const bare = { index: 0, gpuClass: "" };
  equal(
    misfit(request({ gpus: Array(8).fill(bare) })),
    undefined,
    "an unknown card blocks nothing",
  );
});

Deno.test("misfit() names the number that is wrong, and what would fit", () => {
  const mixed = request().gpus.map((gpu) => ({
    ...gpu,
    gpuClass: gpu.index === 3 ? "a100-80g" : gpu.gpuClass,
  }));
  match(refused({ gpus: mixed }).message, /GPU 0 is h100-80g and GPU 3 is a100-80g/);
  match(
    refused({ gpuCount: 6, tp: 6 }).message,
    /64 attention heads .* tp 6; tp can be 1, 2, 4, 8/,
  );
  const kv = factsOf({ ...LLAMA_70B, num_attention_heads: 36, num_key_value_heads: 12 });
  match(
    refused({ model: kv, tp: 9, gpuCount: 9 }).message,
    /12 KV heads and tp 9 .* 1, 2, 3, 4, 6, 12/,
  );
  const small = refused({ gpuCount: 1, tp: 1 });
  equal(small.reason, "weights_do_not_fit");
  match(small.message, /144384 MiB.* 0\.92 of a GPU's 81559 MiB are 75034\. At least 2 such GPUs/);
  const tight = refused({ gpuCount: 2, tp: 2 });
  equal(tight.reason, "context_does_not_fit");
  match(
    tight.message,
    /context of 131072 tokens takes 20480 MiB .* 1818 MiB are left .* At most 11635/,
  );
  equal(
    misfit(request({ gpuCount: 2, tp: 2, args: readLaunchArgs(["--max-model-len", "8K"]) })),
    undefined,
  );
});

Deno.test("misfit() holds quantisation against the card, by engine", () => {
  const t4 = request().gpus.map((gpu) => ({ ...gpu, computeCapability: "7.5" }));
  const fp8 = { ...factsOf(LLAMA_70B), quantization: "fp8" };
  match(
    refused({ gpus: t4, model: fp8 }).message,
    /fp8 needs compute capability 8\.0 with vllm; GPU 0 has 7\.5/,
  );
  const a100 = request().gpus.map((gpu) => ({ ...gpu, computeCapability: "8.0" }));
  const mxfp4 = { ...factsOf(LLAMA_70B), quantization: "mxfp4" };
  equal(misfit(request({ gpus: a100, model: mxfp4 })), undefined);
  equal(refused({ gpus: a100, model: mxfp4, engine: "sglang" }).reason, "gpu_too_old");
  equal(misfit(request({ gpus: a100, model: { ...mxfp4, quantization: "new_thing" } })), undefined);
  match(
    refused({ gpus: t4, args: readLaunchArgs(["--dtype", "bfloat16"]) }).message,
    /--dtype half/,
  );
});

Deno.test("misfit() refuses a card whose memory somebody holds, but not for ever", () => {
  const taken = request().gpus.map((gpu) => ({ ...gpu, usedMib: gpu.index === 5 ? 70_000 : 4 }));
  const found = misfit(request({ gpus: taken }));
  equal(found?.reason, "gpu_memory_taken");
  equal(found?.permanent, false);
  match(found?.message ?? "", /GPU 5 has 11559 of 81559 MiB free, and vllm wants 73404/);
});

Deno.test("misfit() holds what SGLang and llama.cpp need against what is free, not for ever", () => {
  const used = (usedMib: number | undefined, engine: string, tp: number) => {
    const gpus = request({ gpuCount: 2 }).gpus.map(({ index, gpuClass, totalMib }) => ({
      index,
      gpuClass,
      ...(totalMib === undefined ? {} : { totalMib }),
      ...(index === 0 || usedMib === undefined ? {} : { usedMib }),
    }));
    return misfit(request({ engine, tp, gpus, gpuCount: 2, weightBytes: 100 * GIB }));
  };
  const each = used(30_000, "sglang", 2);
  equal(each?.reason, "gpu_memory_taken");
  equal(each?.permanent, false);
  match(
    each?.message ?? "",
    /GPU 1 has 51559 of 81559 MiB free, and sglang needs 52224 of each .* end what holds/,
  );
  equal(used(29_000, "sglang", 2), undefined);
  equal(used(undefined, "sglang", 2), undefined, "unknown blocks nothing");
  equal(used(81_000, "llamacpp", 1), undefined, "one of the two is unknown");
  const both = (usedMib: number) => {
    const gpus = request({ gpuCount: 2 }).gpus.map((gpu) => ({ ...gpu, usedMib }));
    const llama = { engine: "llamacpp", tp: 1, gpus, gpuCount: 2, weightBytes: 100 * GIB };
    return misfit(request({ ...llama, args: readLaunchArgs(["-c", "8192"]) }));
  };
  equal(both(28_000), undefined);
  const together = both(30_000);
  equal(together?.reason, "gpu_memory_taken");
  equal(together?.permanent, false);
  match(together?.message ?? "", /The GPUs have 103118 MiB free together, .* needs 105984 for/);
});

Deno.test("misfit() refuses no context that an engine fits to its memory, or divides otherwise", () => {
  const tight = { gpuCount: 2, tp: 2 };
  for (const args of [["--max-model-len", "auto"], ["-dcp", "2"]]) {
    equal(misfit(request({ ...tight, args: readLaunchArgs(args) })), undefined, args.join(" "));
  }
});

Deno.test("misfit() takes SGLang's own defaults: it leaves room by the card, and shortens in silence", () => {
  const sglang = { engine: "sglang", gpuCount: 2, tp: 2 };
  equal(misfit(request(sglang)), undefined, "it starts, with less than the model's context");
  match(
    contextWarning(request(sglang)) ?? "",
    /131072 tokens does not fit .* more than about 41926 tokens/,
  );
  equal(contextWarning(request({ engine: "sglang", gpuCount: 8 })), undefined);
  equal(contextWarning(request({ gpuCount: 2, tp: 2 })), undefined, "vllm refuses by itself");
  const asked = refused({ ...sglang, args: readLaunchArgs(["--context-length", "65536"]) });
  equal(asked.reason, "context_does_not_fit");
  match(asked.message, /sglang leaves 1792 of a GPU's 81559 MiB free at least/);
  // Weights that 0.9 of the cards would not hold, and SGLang does.
  equal(misfit(request({ ...sglang, weightBytes: 152 * GIB })), undefined);
  const own = { ...sglang, weightBytes: 152 * GIB };
  equal(
    refused({ ...own, args: readLaunchArgs(["--mem-fraction-static", "0.9"]) }).reason,
    "weights_do_not_fit",
  );
});

Deno.test("misfit() gives llama.cpp all cards together", () => {
  const facts = readGguf(ggufBytes(LLAMA_8B));
  ok(facts.kind === "model");
  const llama = { engine: "llamacpp", tp: 1, model: facts.facts, weightBytes: 100 * GIB };
  equal(
    misfit(request({ ...llama, gpuCount: 2, args: readLaunchArgs(["-c", "8192"]) })),
    undefined,
  );
  equal(refused({ ...llama, gpuCount: 1 }).reason, "weights_do_not_fit");
  // 128 KiB a token over both cards, whatever tp says: 59 GiB less a little are left for them.
  const long = { ...llama, tp: 2, gpuCount: 2, args: readLaunchArgs(["-c", "600000"]) };
  match(refused(long).message, /At most 4\d{5} tokens fit/);
});
