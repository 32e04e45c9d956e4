/**
 * A program's Prometheus registry. prom-client's default process metrics read files that our
 * permission sets refuse, so memory and event-loop lag come from Deno itself.
 */
import { Gauge, Histogram, Registry } from "prom-client";
import { VERSION } from "./version.ts";

/** How often the event loop's lag is sampled. */
const LAG_SAMPLE_MS = 500;

export interface ProgramMetrics {
  readonly registry: Registry;
  /** Ends the sampling. */
  stop(): void;
}

/** A registry with `heddle_build_info`, memory and event-loop lag of this process. */
export function startMetrics(program: string): ProgramMetrics {
  const registry = new Registry();
  new Gauge({
    name: "heddle_build_info",
    help: "Always 1; the labels say what runs.",
    labelNames: ["program", "version"],
    registers: [registry],
  }).set({ program, version: VERSION }, 1);
  new Gauge({
    name: "heddle_process_memory_bytes",
    help: "Memory of this process by kind.",
    labelNames: ["kind"],
    registers: [registry],
    collect() {
      const usage = Deno.memoryUsage();
      this.set({ kind: "resident" }, usage.rss);
      this.set({ kind: "heap_used" }, usage.heapUsed);
      this.set({ kind: "external" }, usage.external);
    },
  });
  const lag = new Histogram({
    name: "heddle_event_loop_lag_seconds",
    help: "How late a timer fires: time in which nothing else could run.",
    buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
    registers: [registry],
  });
  let expected = performance.now() + LAG_SAMPLE_MS;
  const timer = setInterval(() => {
    const now = performance.now();
    lag.observe(Math.max(0, now - expected) / 1_000);
    expected = now + LAG_SAMPLE_MS;
  }, LAG_SAMPLE_MS);
  return { registry, stop: () => clearInterval(timer) };
}
