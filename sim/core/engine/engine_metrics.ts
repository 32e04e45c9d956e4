/** What vLLM V1 exports about its engine, under vLLM's names and labels. */
import { type Labels, Metric } from "./metrics.ts";
import type { StepPlan } from "./scheduler.ts";
import type { FinishReason, Sequence } from "./sequence.ts";

const SECONDS_FIRST_TOKEN = [
  ...[0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10],
  ...[20, 40, 80, 160, 640, 2560],
];
const SECONDS_TOKEN = [
  ...[0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10],
  ...[20, 40, 80],
];
const SECONDS_REQUEST = [
  ...[0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960],
  ...[1920, 7680],
];
const TOKENS_STEP = [1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384];
const FINISH_REASONS: readonly FinishReason[] = ["stop", "length", "abort", "error"];

function bounds125(max: number): number[] {
  const bounds: number[] = [];
  for (let power = 1; power <= max; power *= 10) {
    bounds.push(...[1, 2, 5].map((mantissa) => mantissa * power).filter((bound) => bound <= max));
  }
  return bounds;
}

export interface EngineMetricsOptions {
  /** The first served name, as in vLLM. */
  readonly modelName: string;
  readonly contextTokensMax: number;
  readonly blockTokens: number;
  readonly blockCount: number;
  readonly prefixCaching: boolean;
}

/** The engine's state at the moment of a scrape. */
export interface EngineGauges {
  readonly running: number;
  readonly waiting: number;
  readonly cacheUsage: number;
}

/** What was computed since the start. */
export interface EngineTotals {
  readonly promptTokens: number;
  readonly generatedTokens: number;
  readonly cacheQueries: number;
  readonly cacheHits: number;
}

export class EngineMetrics {
  readonly #labels: Labels;
  readonly #all: Metric[] = [];
  readonly #running = this.#gauge("num_requests_running", "Number of requests in execution.");
  readonly #waiting = this.#gauge("num_requests_waiting", "Number of requests waiting.");
  readonly #waitingBy = this.#gauge(
    "num_requests_waiting_by_reason",
    "Number of requests waiting, by reason.",
  );
  readonly #usage = this.#gauge(
    "kv_cache_usage_perc",
    "KV-cache usage. 1 means 100 percent usage.",
  );
  readonly #cacheConfig = this.#gauge(
    "cache_config_info",
    "Information of the LLMEngine CacheConfig",
  );
  readonly #queries = this.#counter("prefix_cache_queries", "Prefix cache queries, in tokens.");
  readonly #hits = this.#counter("prefix_cache_hits", "Prefix cache hits, in tokens.");
  readonly #preemptions = this.#counter("num_preemptions", "Number of preemptions.");
  readonly #prompt = this.#counter("prompt_tokens", "Number of prefill tokens processed.");
  readonly #promptCached = this.#counter("prompt_tokens_cached", "Prompt tokens found in a cache.");
  readonly #promptBy = this.#counter("prompt_tokens_by_source", "Prompt tokens by source.");
  readonly #generation = this.#counter(
    "generation_tokens",
    "Number of generation tokens processed.",
  );
  readonly #success = this.#counter("request_success", "Count of finished requests.");
  readonly #stepTokens = this.#histogram("iteration_tokens_total", TOKENS_STEP);
  readonly #ttft = this.#histogram("time_to_first_token_seconds", SECONDS_FIRST_TOKEN);
  readonly #itl = this.#histogram("inter_token_latency_seconds", SECONDS_TOKEN);
  readonly #tpot = this.#histogram("request_time_per_output_token_seconds", SECONDS_TOKEN);
  readonly #e2e = this.#histogram("e2e_request_latency_seconds", SECONDS_REQUEST);
  readonly #queue = this.#histogram("request_queue_time_seconds", SECONDS_REQUEST);
  readonly #inference = this.#histogram("request_inference_time_seconds", SECONDS_REQUEST);
  readonly #prefill = this.#histogram("request_prefill_time_seconds", SECONDS_REQUEST);
  readonly #decode = this.#histogram("request_decode_time_seconds", SECONDS_REQUEST);
  readonly #requestPrompt: Metric;
  readonly #requestGeneration: Metric;
  readonly #requestComputed: Metric;
  readonly #maxTokens: Metric;
  readonly #choices = this.#histogram("request_params_n", [1, 2, 5, 10, 20]);

  constructor(options: EngineMetricsOptions) {
    const tokens = bounds125(options.contextTokensMax);
    this.#labels = { model_name: options.modelName, engine: "0" };
    this.#requestPrompt = this.#histogram("request_prompt_tokens", tokens);
    this.#requestGeneration = this.#histogram("request_generation_tokens", tokens);
    this.#requestComputed = this.#histogram("request_prefill_kv_computed_tokens", tokens);
    this.#maxTokens = this.#histogram("request_params_max_tokens", tokens);
    this.#cacheConfig.set({
      block_size: String(options.blockTokens),
      cache_dtype: "auto",
      enable_prefix_caching: options.prefixCaching ? "True" : "False",
      engine: "0",
      num_gpu_blocks: String(options.blockCount),
    }, 1);
    this.#startAtZero();
  }

  get totals(): EngineTotals {
    return {
      promptTokens: this.#prompt.read(this.#labels),
      generatedTokens: this.#generation.read(this.#labels),
      cacheQueries: this.#queries.read(this.#labels),
      cacheHits: this.#hits.read(this.#labels),
    };
  }

  step(plan: StepPlan): void {
    this.#queries.add(this.#labels, plan.cacheQueries);
    this.#hits.add(this.#labels, plan.cacheHits);
    this.#preemptions.add(this.#labels, plan.preempted.length);
    const tokens = plan.entries.reduce((sum, entry) => sum + entry.tokens, 0);
    if (tokens > 0) this.#stepTokens.observe(this.#labels, tokens);
  }

  /** The prompt of `sequence` has been computed for the first time. */
  prompt(sequence: Sequence): void {
    const total = sequence.request.promptTokens.length;
    const cached = sequence.cachedPromptTokens ?? 0;
    this.#prompt.add(this.#labels, total);
    this.#promptCached.add(this.#labels, cached);
    this.#promptBy.add({ ...this.#labels, source: "local_compute" }, total - cached);
    this.#promptBy.add({ ...this.#labels, source: "local_cache_hit" }, cached);
  }

  token(sequence: Sequence, now: number): void {
    const { arrivedAt, lastTokenAt } = sequence.times;
    this.#generation.add(this.#labels, 1);
    if (lastTokenAt === undefined) this.#ttft.observe(this.#labels, (now - arrivedAt) / 1000);
    else this.#itl.observe(this.#labels, (now - lastTokenAt) / 1000);
  }

  finished(sequence: Sequence, reason: FinishReason, now: number): void {
    const { times, request, generated } = sequence;
    const labels = this.#labels;
    this.#success.add({ ...labels, finished_reason: reason }, 1);
    this.#e2e.observe(labels, (now - times.arrivedAt) / 1000);
    this.#requestPrompt.observe(labels, request.promptTokens.length);
    this.#requestGeneration.observe(labels, generated);
    this.#maxTokens.observe(labels, request.tokensMax);
    const scheduledAt = times.scheduledAt ?? now;
    const firstTokenAt = times.firstTokenAt ?? now;
    this.#queue.observe(labels, (scheduledAt - times.arrivedAt) / 1000);
    this.#inference.observe(labels, (now - scheduledAt) / 1000);
    this.#prefill.observe(labels, (firstTokenAt - scheduledAt) / 1000);
    this.#decode.observe(labels, (now - firstTokenAt) / 1000);
    this.#requestComputed.observe(
      labels,
      request.promptTokens.length - (sequence.cachedPromptTokens ?? 0),
    );
    if (generated > 1) {
      this.#tpot.observe(labels, (now - firstTokenAt) / 1000 / (generated - 1));
    }
  }

  /** A request with `count` choices was accepted. */
  accepted(count: number): void {
    this.#choices.observe(this.#labels, count);
  }

  /** The exposition text, with the gauges as they are now. */
  render(gauges: EngineGauges): string {
    this.#running.set(this.#labels, gauges.running);
    this.#waiting.set(this.#labels, gauges.waiting);
    this.#waitingBy.set({ ...this.#labels, reason: "capacity" }, gauges.waiting);
    this.#usage.set(this.#labels, gauges.cacheUsage);
    return this.#all.map((metric) => metric.render()).join("");
  }

  /** vLLM's series exist from the start, with 0; a scraper that misses one would call it unknown. */
  #startAtZero(): void {
    for (
      const metric of [
        ...[this.#queries, this.#hits, this.#preemptions, this.#prompt, this.#promptCached],
        this.#generation,
      ]
    ) {
      metric.add(this.#labels, 0);
    }
    for (const reason of FINISH_REASONS) {
      this.#success.add({ ...this.#labels, finished_reason: reason }, 0);
    }
    for (const source of ["local_compute", "local_cache_hit", "external_kv_transfer"]) {
      this.#promptBy.add({ ...this.#labels, source }, 0);
    }
  }

  #gauge(name: string, help: string): Metric {
    return this.#keep(new Metric({ name: `vllm:${name}`, kind: "gauge", help }));
  }

  #counter(name: string, help: string): Metric {
    return this.#keep(new Metric({ name: `vllm:${name}`, kind: "counter", help }));
  }

  #histogram(name: string, bounds: readonly number[]): Metric {
    const help = `Histogram of ${name.replaceAll("_", " ")}.`;
    return this.#keep(new Metric({ name: `vllm:${name}`, kind: "histogram", help, bounds }));
  }

  #keep(metric: Metric): Metric {
    this.#all.push(metric);
    return metric;
  }
}
