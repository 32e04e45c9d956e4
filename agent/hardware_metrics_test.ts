import { deepEqual } from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { GpuSchema, HcaSchema } from "@heddle/proto/gen/types";
import { Registry } from "prom-client";
import { hardwareMetrics } from "./hardware_metrics.ts";

async function samples(registry: Registry): Promise<readonly string[]> {
  const text = await registry.metrics();
  return text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
}

Deno.test("GPUs and adapters are shown as last seen, and what is unknown is not", async () => {
  const registry = new Registry();
  const seen = {
    gpuFacts: [
      create(GpuSchema, {
        index: 0,
        gpuClass: "h100-80g",
        memoryTotalMib: 81_559,
        memoryUsedMib: 0,
        utilizationPercent: 50,
      }),
      create(GpuSchema, { index: 1, problems: [{ reason: "gpu_lost" }] }),
    ],
    hcaFacts: [
      create(HcaSchema, { name: "mlx5_0", port: 1, fabric: "ib-a", active: true, rateGbps: 400 }),
      create(HcaSchema, { name: "mlx5_1", port: 1 }),
    ],
  };
  hardwareMetrics(registry, seen);
  deepEqual(await samples(registry), [
    'heddle_agent_gpu_usable{gpu="0",class="h100-80g"} 1',
    'heddle_agent_gpu_usable{gpu="1",class=""} 0',
    'heddle_agent_gpu_memory_total_bytes{gpu="0",class="h100-80g"} 85520809984',
    'heddle_agent_gpu_memory_used_bytes{gpu="0",class="h100-80g"} 0',
    'heddle_agent_gpu_utilization_ratio{gpu="0",class="h100-80g"} 0.5',
    'heddle_agent_hca_active{hca="mlx5_0",port="1",fabric="ib-a"} 1',
    'heddle_agent_hca_active{hca="mlx5_1",port="1",fabric=""} 0',
    'heddle_agent_hca_rate_bits_per_second{hca="mlx5_0",port="1",fabric="ib-a"} 400000000000',
  ]);
  seen.gpuFacts.length = 0;
  seen.hcaFacts.length = 0;
  deepEqual(await samples(registry), []);
});
