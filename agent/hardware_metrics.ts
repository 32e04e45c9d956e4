/** GPUs and adapters as last seen, for Prometheus. What is unknown has no sample: it is never zero. */
import { Gauge, type Registry } from "prom-client";
import type { Gpu, Hca } from "@heddle/proto/gen/types";

/** What was seen last. */
export interface SeenHardware {
  readonly gpuFacts: readonly Gpu[];
  readonly hcaFacts: readonly Hca[];
}

const MIB = 2 ** 20;
const BITS_PER_GIGABIT = 1e9;

/** Read when they are asked for. */
export function hardwareMetrics(registry: Registry, seen: SeenHardware): void {
  const gpuGauge = (name: string, help: string, value: (gpu: Gpu) => number | undefined) =>
    new Gauge({
      name: `heddle_agent_gpu_${name}`,
      help,
      labelNames: ["gpu", "class"],
      registers: [registry],
      collect() {
        this.reset();
        for (const gpu of seen.gpuFacts) {
          const found = value(gpu);
          const labels = { gpu: String(gpu.index), class: gpu.gpuClass };
          if (found !== undefined) this.set(labels, found);
        }
      },
    });
  gpuGauge(
    "usable",
    "1 for a GPU that placement may use.",
    (gpu) => gpu.problems.length === 0 ? 1 : 0,
  );
  gpuGauge(
    "memory_total_bytes",
    "Memory of a GPU as measured.",
    ({ memoryTotalMib: mib }) => mib && mib * MIB,
  );
  gpuGauge(
    "memory_used_bytes",
    "Memory of a GPU in use, by whomever.",
    ({ memoryUsedMib: mib }) => mib === undefined ? undefined : mib * MIB,
  );
  gpuGauge(
    "utilization_ratio",
    "How busy a GPU's compute engines are, 0 to 1.",
    (gpu) => gpu.utilizationPercent === undefined ? undefined : gpu.utilizationPercent / 100,
  );
  gpuGauge("temperature_celsius", "Temperature of a GPU.", (gpu) => gpu.temperatureCelsius);

  const hcaGauge = (name: string, help: string, value: (hca: Hca) => number | undefined) =>
    new Gauge({
      name: `heddle_agent_hca_${name}`,
      help,
      labelNames: ["hca", "port", "fabric"],
      registers: [registry],
      collect() {
        this.reset();
        for (const hca of seen.hcaFacts) {
          const found = value(hca);
          const labels = { hca: hca.name, port: String(hca.port), fabric: hca.fabric };
          if (found !== undefined) this.set(labels, found);
        }
      },
    });
  hcaGauge("active", "1 for a port whose link is up.", (hca) => hca.active ? 1 : 0);
  hcaGauge(
    "rate_bits_per_second",
    "Rate of a port as negotiated.",
    ({ rateGbps }) => rateGbps === undefined ? undefined : rateGbps * BITS_PER_GIGABIT,
  );
}
