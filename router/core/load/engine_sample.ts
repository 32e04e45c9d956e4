/**
 * What an engine says of its load, whatever it calls it. Names differ between engines and between
 * versions of one engine; a new one is a line in the table. What an engine does not say is unknown,
 * never zero.
 */
import { readSeries, type Series } from "./exposition.ts";

/** Undefined: the engine does not say. */
export interface EngineSample {
  readonly running: number | undefined;
  readonly waiting: number | undefined;
  /** Share of the KV cache in use by requests, 0 to 1. */
  readonly kvUsage: number | undefined;
  /** Tokens that the KV cache holds. */
  readonly kvTokens: number | undefined;
  /** Prompt tokens looked up in the prefix cache since the engine's start, and those found. */
  readonly prefixQueries: number | undefined;
  readonly prefixHits: number | undefined;
}

type Field = keyof EngineSample;

/** Sums over an engine's copies; of usage the worst one counts. */
const WORST: ReadonlySet<Field> = new Set<Field>(["kvUsage"]);

/** Newest names first: where two are told, the first one counts. */
const ALIASES: Readonly<Record<Field, readonly string[]>> = {
  running: [
    "vllm:num_requests_running",
    "sglang:num_running_reqs",
    "llamacpp:requests_processing",
    "trtllm_num_requests_running",
  ],
  waiting: [
    "vllm:num_requests_waiting",
    "sglang:num_queue_reqs",
    "llamacpp:requests_deferred",
    "trtllm_num_requests_waiting",
  ],
  kvUsage: [
    "vllm:kv_cache_usage_perc",
    "vllm:gpu_cache_usage_perc",
    "sglang:token_usage",
    "trtllm_kv_cache_utilization",
    "llamacpp:kv_cache_usage_ratio",
  ],
  kvTokens: ["sglang:max_total_num_tokens"],
  prefixQueries: [
    "vllm:prefix_cache_queries_total",
    "vllm:gpu_prefix_cache_queries_total",
    "sglang:prompt_tokens_total",
  ],
  prefixHits: [
    "vllm:prefix_cache_hits_total",
    "vllm:gpu_prefix_cache_hits_total",
    "sglang:cached_tokens_total",
  ],
};

/** Carries the cache's size in its labels: tokens of a block, and blocks. */
const CONFIG_INFO: Readonly<Record<string, readonly [string, string]>> = {
  "vllm:cache_config_info": ["block_size", "num_gpu_blocks"],
  "sglang:cache_config_info": ["page_size", "num_pages"],
};

/** Exporters that allow no colon write an underscore. */
const KNOWN: ReadonlyMap<string, string> = new Map(
  [...Object.values(ALIASES).flat(), ...Object.keys(CONFIG_INFO)]
    .flatMap((name) => [[name, name], [name.replace(":", "_"), name]] as const),
);

/** Reads an engine's `/metrics`. Undefined when it says nothing of all this. */
export function readEngineSample(text: string): EngineSample | undefined {
  const byName = new Map<string, Series[]>();
  for (const series of readSeries(text, (name) => KNOWN.has(name))) {
    const name = KNOWN.get(series.name) ?? series.name;
    const list = byName.get(name);
    if (list === undefined) byName.set(name, [series]);
    else list.push(series);
  }
  if (byName.size === 0) return undefined;
  const read = (field: Field): number | undefined => {
    for (const name of ALIASES[field]) {
      const value = total(byName.get(name) ?? [], WORST.has(field));
      if (value !== undefined) return value;
    }
    return undefined;
  };
  return {
    running: read("running"),
    waiting: read("waiting"),
    kvUsage: shareOf(read("kvUsage")),
    kvTokens: read("kvTokens") ?? configuredTokens(byName),
    prefixQueries: read("prefixQueries"),
    prefixHits: read("prefixHits"),
  };
}

/**
 * Over the copies of a data-parallel engine. Ranks of one copy say the same thing each: of these the
 * largest counts, once.
 */
function total(list: readonly Series[], worst: boolean): number | undefined {
  const byCopy = new Map<string, number>();
  for (const { labels, value } of list) {
    if (!Number.isFinite(value) || value < 0) continue;
    const copy = labels.get("engine") ?? labels.get("dp_rank") ?? "";
    byCopy.set(copy, Math.max(byCopy.get(copy) ?? 0, value));
  }
  if (byCopy.size === 0) return undefined;
  const values = [...byCopy.values()];
  return worst ? Math.max(...values) : values.reduce((sum, value) => sum + value, 0);
}

function shareOf(value: number | undefined): number | undefined {
  return value === undefined ? undefined : Math.min(value, 1);
}

function configuredTokens(byName: ReadonlyMap<string, readonly Series[]>): number | undefined {
  for (const [name, [size, count]] of Object.entries(CONFIG_INFO)) {
    const tokens = total(
      (byName.get(name) ?? []).map((series) => ({
        ...series,
        value: Number(series.labels.get(size) ?? NaN) * Number(series.labels.get(count) ?? NaN),
      })),
      false,
    );
    if (tokens !== undefined && tokens > 0) return tokens;
  }
  return undefined;
}
