import { deepEqual } from "node:assert/strict";
import { engineLoad } from "./engine_load.ts";

const VLLM = {
  running: ["vllm:num_requests_running"],
  waiting: ["vllm:num_requests_waiting"],
  kvUsage: ["vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"],
  progress: ["vllm:generation_tokens_total", "vllm:prompt_tokens_total"],
};

Deno.test("engineLoad() adds requests of data-parallel engines up and takes the fullest cache", () => {
  const text = `# HELP vllm:num_requests_running Number of requests
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m {x} y"} 3.0
vllm:num_requests_running{engine="1",model_name="m {x} y"} 4.0
vllm:num_requests_waiting{engine="0"} 0.0
vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 9.0
vllm:gpu_cache_usage_perc{engine="0"} 0.25
vllm:gpu_cache_usage_perc{engine="1"} 0.75
`;
  deepEqual(engineLoad(text, VLLM), { running: 7, waiting: 0, kvUsage: 0.75 });
});

Deno.test("engineLoad() leaves out what is not there: unknown is not 0", () => {
  deepEqual(engineLoad("vllm:num_requests_running 1\n", VLLM), { running: 1 });
  deepEqual(engineLoad("vllm:num_requests_running NaN\n", VLLM), {});
  deepEqual(engineLoad("<html>not metrics</html>", VLLM), {});
});

Deno.test("engineLoad() adds up what counts work, over engines and kinds", () => {
  const text = `vllm:generation_tokens_total{engine="0"} 10.0
vllm:generation_tokens_total{engine="1"} 5.0
vllm:prompt_tokens_total{engine="0"} 100.0
`;
  deepEqual(engineLoad(text, VLLM), { progress: 115 });
});
