/** The simulated engine's configuration: from options and environment to checked values. */
import { z } from "zod";
import { type Fault, FaultSyntaxError, parseFault } from "./core/fault.ts";
import { type ParsedArguments, SIM_OPTIONS, UsageError } from "./core/options.ts";

/** Tokens that the cache holds when nothing says how many blocks there are. */
const CACHE_TOKENS_DEFAULT = 131_072;
const STEP_TOKENS_DEFAULT = 2_048;
const DURATION_MS_MAX = 86_400_000;

const positive = z.coerce.number().int().positive();
const rate = z.coerce.number().positive().max(1e9);
const durationMs = z.coerce.number().nonnegative().max(DURATION_MS_MAX);
const port = z.coerce.number().int().min(0).max(65_535);
const flag = z.enum(["true", "false"]).transform((text) => text === "true");

/** As vLLM reads sizes: 8k is 8,000 and 8K is 8,192. */
const tokenCount = z.string().regex(/^\d+(\.\d+)?[kKmM]?$/, "must be a count such as 8192 or 8K")
  .transform((text) => {
    const unit = { k: 1_000, K: 1_024, m: 1_000_000, M: 1_048_576 }[text.slice(-1)];
    return Math.floor(Number.parseFloat(text) * (unit ?? 1));
  }).pipe(z.number().int().positive());

const imageLimit = z.string().transform((text, context) => {
  const count = /image["']?\s*[:=]\s*(\d+)/.exec(text)?.[1];
  if (count !== undefined) return Number(count);
  context.addIssue({ code: "custom", message: 'must be like {"image": 2}' });
  return z.NEVER;
});

const faults = z.array(z.string()).transform((specs, context): Fault[] => {
  try {
    return specs.map(parseFault);
  } catch (error) {
    if (!(error instanceof FaultSyntaxError)) throw error;
    context.addIssue({ code: "custom", message: error.message });
    return z.NEVER;
  }
});

const configSchema = z.strictObject({
  "model": z.string().min(1),
  "host": z.string().min(1).default("127.0.0.1"),
  "port": port.default(8000),
  "served-model-name": z.array(z.string().min(1)).default([]),
  "max-model-len": tokenCount.default(8_192),
  "max-num-seqs": positive.default(256),
  "max-num-batched-tokens": tokenCount.optional(),
  "block-size": positive.default(16),
  "num-gpu-blocks-override": positive.optional(),
  "enable-prefix-caching": flag.default(true),
  "enable-prompt-tokens-details": flag.default(false),
  "enable-force-include-usage": flag.default(false),
  "enable-request-id-headers": flag.default(false),
  "enable-auto-tool-choice": flag.default(true),
  "max-logprobs": z.coerce.number().int().nonnegative().default(20),
  "limit-mm-per-prompt": imageLimit.default(0),
  "runner": z.enum(["auto", "generate", "pooling"]).default("auto"),
  "api-key": z.array(z.string()).default([]),
  "seed": z.coerce.number().int().default(0),
  "shutdown-timeout": z.coerce.number().nonnegative().max(86_400).default(0),
  "disable-log-stats": flag.default(false),
  "disable-uvicorn-access-log": flag.default(false),
  "tensor-parallel-size": positive.default(1),
  "nnodes": positive.default(1),
  "node-rank": z.coerce.number().int().nonnegative().default(0),
  "master-addr": z.string().min(1).default("127.0.0.1"),
  "master-port": port.default(29_501),
  "headless": flag.default(false),
  "data-parallel-size": positive.default(1),
  "data-parallel-size-local": positive.optional(),
  "data-parallel-start-rank": z.coerce.number().int().nonnegative().default(0),
  "data-parallel-address": z.string().min(1).default("127.0.0.1"),
  "data-parallel-rpc-port": port.default(29_550),
  "sim-prefill-tokens-per-s": rate.default(8_000),
  "sim-decode-tokens-per-s": rate.default(50),
  "sim-decode-tokens-per-s-total": rate.optional(),
  "sim-overhead-ms": durationMs.default(50),
  "sim-load-ms": durationMs.default(500),
  "sim-answer-tokens-min": positive.default(64),
  "sim-answer-tokens-max": positive.default(192),
  "sim-embedding-dimensions": positive.default(384),
  "sim-rendezvous-timeout-ms": durationMs.default(600_000),
  "sim-fabric": z.string().default(""),
  "sim-fault": faults.default([]),
  "sim-allow-request-faults": flag.default(false),
});
export type SimConfig = z.output<typeof configSchema>;

/** Rules between options. */
function checkTogether(config: SimConfig, context: z.RefinementCtx): void {
  const refuse = (path: string, message: string) =>
    context.addIssue({ code: "custom", path: [path], message });
  checkRanks(config, refuse);
  if (config["sim-answer-tokens-max"] < config["sim-answer-tokens-min"]) {
    refuse("sim-answer-tokens-max", "must not be below --sim-answer-tokens-min");
  }
  const total = config["sim-decode-tokens-per-s-total"];
  if (total !== undefined && total < config["sim-decode-tokens-per-s"]) {
    refuse(
      "sim-decode-tokens-per-s-total",
      `must not be below --sim-decode-tokens-per-s, which is ${config["sim-decode-tokens-per-s"]}`,
    );
  }
  const stepTokens = config["max-num-batched-tokens"];
  if (stepTokens !== undefined && stepTokens < config["max-num-seqs"]) {
    refuse(
      "max-num-batched-tokens",
      `must not be below --max-num-seqs, which is ${config["max-num-seqs"]}`,
    );
  }
  const cacheTokens = blockCount(config) * config["block-size"];
  if (cacheTokens < config["max-model-len"]) {
    refuse(
      "num-gpu-blocks-override",
      `To serve at least one request with the model's max seq len (${config["max-model-len"]}), ` +
        `the KV cache must hold as many tokens; it holds ${cacheTokens}`,
    );
  }
}

const LISTS = new Set(["served-model-name", "api-key", "sim-fault"]);

/** Options as given, then the environment, then defaults. @throws UsageError with a line for each problem. */
export function readConfig(
  parsed: ParsedArguments,
  env: (name: string) => string | undefined,
): SimConfig {
  const raw: Record<string, string | readonly string[]> = {};
  for (const name of Object.keys(configSchema.shape)) {
    const values = parsed.values.get(name) ?? fromEnvironment(name, env);
    if (values === undefined) continue;
    raw[name] = LISTS.has(name) ? values : values.at(-1) ?? "";
  }
  const model = parsed.positionals[0];
  if (model !== undefined) raw["model"] = model;
  if (raw["model"] === undefined) throw new UsageError("no MODEL given: heddle-sim serve MODEL");
  const result = configSchema.superRefine(checkTogether).safeParse(raw);
  if (result.success) return result.data;
  throw new UsageError(
    result.error.issues.map((issue) => `--${issue.path.join(".")}: ${issue.message}`).join("\n"),
  );
}

function fromEnvironment(
  name: string,
  env: (name: string) => string | undefined,
): readonly string[] | undefined {
  if (name === "api-key") return nonEmpty(env("VLLM_API_KEY"));
  if (!SIM_OPTIONS.some((option) => option.name === name)) return undefined;
  const value = nonEmpty(env(`HEDDLE_${name.toUpperCase().replaceAll("-", "_")}`));
  // A fault's own parameters are separated by commas.
  return name === "sim-fault" ? value?.flatMap((text) => text.split(";")).filter(Boolean) : value;
}

function nonEmpty(value: string | undefined): readonly string[] | undefined {
  return value === undefined || value === "" ? undefined : [value];
}

function checkRanks(config: SimConfig, refuse: (path: string, message: string) => void): void {
  const copies = config["data-parallel-size"];
  const local = config["data-parallel-size-local"];
  if (config["node-rank"] >= config.nnodes) {
    refuse("node-rank", `must be below --nnodes, which is ${config.nnodes}`);
  }
  if (config["data-parallel-start-rank"] >= copies) {
    refuse("data-parallel-start-rank", `must be below --data-parallel-size, which is ${copies}`);
  }
  if (local !== undefined && local < copies && config.nnodes > 1) {
    refuse("data-parallel-size-local", "cannot be split over nodes together with --nnodes");
  }
  if (local !== undefined && copies % local !== 0) {
    refuse("data-parallel-size-local", `must divide --data-parallel-size, which is ${copies}`);
  }
  const { rank } = groupOf(config);
  if (rank > 0 && !config.headless) {
    refuse("headless", "is needed on every rank above 0: only rank 0 serves HTTP");
  }
  if (rank === 0 && config.headless) {
    refuse("headless", "is for ranks above 0: rank 0 serves HTTP");
  }
}

/** The processes that form one engine, and this one's place among them. */
export interface Group {
  readonly rank: number;
  readonly rankCount: number;
  /** Where rank 0 waits for the others. */
  readonly address: string;
  readonly port: number;
}

/** Nodes of one copy (--nnodes) or nodes of several copies (--data-parallel-size-local). */
export function groupOf(config: SimConfig): Group {
  const local = config["data-parallel-size-local"] ?? config["data-parallel-size"];
  const dataParallel = config.nnodes === 1;
  return {
    rank: dataParallel
      ? Math.floor(config["data-parallel-start-rank"] / local)
      : config["node-rank"],
    rankCount: dataParallel ? Math.ceil(config["data-parallel-size"] / local) : config.nnodes,
    address: dataParallel ? config["data-parallel-address"] : config["master-addr"],
    port: dataParallel ? config["data-parallel-rpc-port"] : config["master-port"],
  };
}

/** Tokens of one step: vLLM's default, but never below the number of requests that run together. */
export function stepTokensMax(config: SimConfig): number {
  return config["max-num-batched-tokens"] ??
    Math.max(STEP_TOKENS_DEFAULT, config["max-num-seqs"]);
}

/** Blocks of the cache: as told, or a default that holds at least one full context. */
export function blockCount(config: SimConfig): number {
  const tokens = Math.max(CACHE_TOKENS_DEFAULT, config["max-model-len"]);
  return config["num-gpu-blocks-override"] ?? Math.ceil(tokens / config["block-size"]);
}

/** What a large batch approaches: as told, or forty times what one request gets. */
export function decodeTotal(config: SimConfig): number {
  return config["sim-decode-tokens-per-s-total"] ?? config["sim-decode-tokens-per-s"] * 40;
}
