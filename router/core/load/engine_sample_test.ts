import { deepEqual, equal } from "node:assert/strict";
import { readEngineSample } from "./engine_sample.ts";

const VLLM = `# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a"} 3.0
vllm:num_requests_running{engine="1",model_name="a"} 4.0
vllm:num_requests_waiting{engine="0",model_name="a"} 1.0
vllm:num_requests_waiting{engine="1",model_name="a"} 0.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="a",reason="capacity"} 1.0
vllm:kv_cache_usage_perc{engine="0",model_name="a"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="a"} 0.75
vllm:cache_config_info{block_size="16",cache_dtype="auto",engine="0",num_gpu_blocks="1000"} 1.0
vllm:cache_config_info{block_size="16",cache_dtype="auto",engine="1",num_gpu_blocks="1000"} 1.0
vllm:prefix_cache_queries_total{engine="0",model_name="a"} 1.2e+03
vllm:prefix_cache_hits_total{engine="0",model_name="a"} 400.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.001",model_name="a"} 0.0
`;

Deno.test("readEngineSample() reads vLLM: sums over copies, and of their caches the fullest", () => {
  deepEqual(readEngineSample(VLLM), {
    running: 7,
    waiting: 1,
    kvUsage: 0.75,
    kvTokens: 32_000,
    prefixQueries: 1_200,
    prefixHits: 400,
  });
});

Deno.test("readEngineSample() knows the older names, and takes the newer where both are told", () => {
  const old = readEngineSample(`vllm:num_requests_running{model_name="a"} 2
vllm:gpu_cache_usage_perc{model_name="a"} 0.5
vllm:gpu_prefix_cache_hits_total{model_name="a"} 7 1700000000000
`);
  equal(old?.running, 2);
  equal(old?.kvUsage, 0.5);
  equal(old?.prefixHits, 7);
  equal(old?.waiting, undefined);
  const both = readEngineSample("vllm:gpu_cache_usage_perc 0.9\nvllm:kv_cache_usage_perc 0.1\n");
  equal(both?.kvUsage, 0.1);
  equal(readEngineSample("vllm_num_requests_waiting 4\n")?.waiting, 4);
});

Deno.test("readEngineSample() reads SGLang, whose ranks all say the same", () => {
  const sample = readEngineSample(`sglang:num_running_reqs{model_name="a",tp_rank="0"} 5
sglang:num_running_reqs{model_name="a",tp_rank="1"} 5
sglang:num_queue_reqs{dp_rank="0",tp_rank="0"} 2
sglang:num_queue_reqs{dp_rank="1",tp_rank="0"} 3
sglang:token_usage{tp_rank="0"} 0.31
sglang:max_total_num_tokens{tp_rank="0"} 500000
sglang:cached_tokens_total{tp_rank="0"} 10
sglang:prompt_tokens_total{tp_rank="0"} 40
`);
  deepEqual(sample, {
    running: 5,
    waiting: 5,
    kvUsage: 0.31,
    kvTokens: 500_000,
    prefixQueries: 40,
    prefixHits: 10,
  });
});

Deno.test("readEngineSample() reads llama.cpp, of whose cache nothing is known", () => {
  const sample = readEngineSample("llamacpp:requests_processing 1\nllamacpp:requests_deferred 6\n");
  deepEqual([sample?.running, sample?.waiting, sample?.kvUsage], [1, 6, undefined]);
});

Deno.test("readEngineSample() takes nonsense for not said, never for zero", () => {
  equal(readEngineSample(""), undefined);
  equal(readEngineSample("<html>not found</html>"), undefined);
  equal(readEngineSample("process_cpu_seconds_total 3\n"), undefined);
  for (const value of ["NaN", "-1", "+Inf", "x", ""]) {
    const sample = readEngineSample(
      `vllm:num_requests_running 1\nvllm:num_requests_waiting ${value}\n`,
    );
    equal(sample?.running, 1);
    equal(sample?.waiting, undefined, value);
  }
  const sample = readEngineSample('vllm:num_requests_waiting{a="} 9",b="\\"",engine="0"} 2\r\n');
  equal(sample?.waiting, 2);
  equal(readEngineSample('vllm:cache_config_info{block_size="None"} 1\n')?.kvTokens, undefined);
});
