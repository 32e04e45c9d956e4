/**
 * The command line, shaped like vLLM's.
 *
 * vLLM's own flags come first; those that mean nothing to a simulation are accepted and ignored, so that a profile
 * written for vLLM starts here unchanged, and everything else is refused, so that a typo is found here too.
 */

export interface OptionSpec {
  /** Without the dashes. */
  readonly name: string;
  readonly short?: string;
  readonly takes: "flag" | "value" | "list";
  /** Shown in --help; options without it are accepted and ignored. */
  readonly help?: string;
}

/** Options that change what the simulated engine does. */
export const USED_OPTIONS: readonly OptionSpec[] = [
  { name: "host", takes: "value", help: "address to listen on (127.0.0.1)" },
  { name: "port", takes: "value", help: "port to listen on (8000)" },
  { name: "served-model-name", takes: "list", help: "names that clients ask for (MODEL)" },
  { name: "max-model-len", takes: "value", help: "context in tokens, also 8k or 8K (8192)" },
  { name: "max-num-seqs", takes: "value", help: "requests that run together (256)" },
  { name: "max-num-batched-tokens", takes: "value", help: "tokens computed in one step (2048)" },
  { name: "block-size", takes: "value", help: "tokens in a KV-cache block (16)" },
  {
    name: "num-gpu-blocks-override",
    takes: "value",
    help: "KV-cache blocks (131072 tokens' worth)",
  },
  { name: "enable-prefix-caching", takes: "flag", help: "reuse blocks by content (on)" },
  { name: "enable-prompt-tokens-details", takes: "flag", help: "report cached_tokens in usage" },
  { name: "enable-force-include-usage", takes: "flag", help: "report usage in every stream" },
  { name: "enable-request-id-headers", takes: "flag", help: "answer with X-Request-Id" },
  { name: "enable-auto-tool-choice", takes: "flag", help: 'accept tool_choice "auto" (on)' },
  { name: "max-logprobs", takes: "value", help: "log probabilities per token (20)" },
  { name: "limit-mm-per-prompt", takes: "value", help: 'images per prompt, {"image":N} (0)' },
  { name: "runner", takes: "value", help: "auto, generate or pooling (auto: both)" },
  { name: "api-key", takes: "list", help: "keys for /v1, /v2, /inference; or VLLM_API_KEY" },
  { name: "seed", takes: "value", help: "decides every answer (0)" },
  { name: "shutdown-timeout", takes: "value", help: "seconds to drain after SIGTERM (0)" },
  { name: "disable-log-stats", takes: "flag", help: "no vllm: metrics" },
  { name: "disable-uvicorn-access-log", takes: "flag", help: "no line per request" },
  { name: "tensor-parallel-size", short: "tp", takes: "value", help: "logged, nothing more (1)" },
  { name: "nnodes", takes: "value", help: "processes that form the engine (1)" },
  { name: "node-rank", takes: "value", help: "this process's rank (0)" },
  { name: "master-addr", takes: "value", help: "rank 0's address for the rendezvous (127.0.0.1)" },
  { name: "master-port", takes: "value", help: "rank 0's port for the rendezvous (29501)" },
  { name: "headless", takes: "flag", help: "serve no HTTP; for ranks above 0" },
  { name: "data-parallel-size", short: "dp", takes: "value", help: "copies, on all nodes (1)" },
  {
    name: "data-parallel-size-local",
    short: "dpl",
    takes: "value",
    help: "copies on this node (all)",
  },
  {
    name: "data-parallel-start-rank",
    short: "dpr",
    takes: "value",
    help: "first copy on this node (0)",
  },
  {
    name: "data-parallel-address",
    short: "dpa",
    takes: "value",
    help: "the first node's address (127.0.0.1)",
  },
  {
    name: "data-parallel-rpc-port",
    short: "dpp",
    takes: "value",
    help: "the first node's port (29550)",
  },
];

/** The simulation's own options; each can come from the environment as HEDDLE_SIM_<NAME>. */
export const SIM_OPTIONS: readonly OptionSpec[] = [
  { name: "sim-prefill-tokens-per-s", takes: "value", help: "prompt tokens per second (8000)" },
  {
    name: "sim-decode-tokens-per-s",
    takes: "value",
    help: "tokens per second of a request that is alone (50)",
  },
  {
    name: "sim-decode-tokens-per-s-total",
    takes: "value",
    help: "tokens per second that a large batch approaches (2000)",
  },
  {
    name: "sim-overhead-ms",
    takes: "value",
    help: "ms before a request reaches the scheduler (50)",
  },
  { name: "sim-load-ms", takes: "value", help: "ms from start until the port opens (500)" },
  { name: "sim-answer-tokens-min", takes: "value", help: "shortest natural answer, tokens (64)" },
  { name: "sim-answer-tokens-max", takes: "value", help: "longest natural answer, tokens (192)" },
  { name: "sim-embedding-dimensions", takes: "value", help: "length of an embedding (384)" },
  {
    name: "sim-rendezvous-timeout-ms",
    takes: "value",
    help: "ms to wait for all ranks (600000)",
  },
  {
    name: "sim-fabric",
    takes: "value",
    help: "fabric this rank is on; ranks that differ hang at their first collective",
  },
  { name: "sim-fault", takes: "list", help: "a fault, see below; repeatable" },
  {
    name: "sim-allow-request-faults",
    takes: "flag",
    help: "obey x-sim-fault headers and sim_fault members",
  },
];

const IGNORED_VALUES = "dtype quantization:q gpu-memory-utilization kv-cache-memory-bytes " +
  "kv-cache-dtype pipeline-parallel-size:pp " +
  "data-parallel-backend:dpb " +
  "data-parallel-rank:dpn distributed-executor-backend " +
  "decode-context-parallel-size:dcp tokenizer tokenizer-mode tokenizer-revision revision " +
  "code-revision hf-config-path hf-overrides hf-token download-dir load-format config-format " +
  "model-loader-extra-config model-impl chat-template chat-template-content-format " +
  "response-role tool-call-parser tool-parser-plugin reasoning-parser generation-config " +
  "override-generation-config max-parallel-loading-workers max-loras max-lora-rank " +
  "max-cpu-loras lora-dtype swap-space cpu-offload-gb compilation-config:O " +
  "cuda-graph-sizes kv-transfer-config kv-events-config kv-offloading-size speculative-config " +
  "scheduling-policy prefix-caching-hash-algo max-num-partial-prefills " +
  "max-long-partial-prefills long-prefill-token-threshold num-lookahead-slots " +
  "uvicorn-log-level root-path api-server-count:asc task convert pooler-config rope-scaling " +
  "rope-theta attention-backend mm-processor-kwargs mm-processor-cache-gb mm-encoder-tp-mode " +
  "guided-decoding-backend structured-outputs-config logits-processor-pattern logprobs-mode " +
  "max-log-len all2all-backend eplb-config stream-interval additional-config worker-cls " +
  "worker-extension-cls collect-detailed-traces otlp-traces-endpoint " +
  "show-hidden-metrics-for-version optimization-level performance-mode";
const IGNORED_FLAGS = "trust-remote-code enforce-eager enable-expert-parallel:ep " +
  "enable-chunked-prefill disable-log-requests enable-log-requests enable-log-outputs " +
  "enable-lora enable-lora-bias fully-sharded-loras enable-sleep-mode data-parallel-hybrid-lb " +
  "data-parallel-external-lb disable-custom-all-reduce async-scheduling enable-eplb enable-dbo " +
  "enable-server-load-tracking disable-fastapi-docs return-tokens-as-token-ids " +
  "disable-frontend-multiprocessing skip-tokenizer-init disable-sliding-window " +
  "disable-cascade-attn calculate-kv-scales use-tqdm-on-load ray-workers-use-nsight " +
  "disable-chunked-mm-input disable-hybrid-kv-cache-manager enable-layerwise-nvtx-tracing " +
  "enable-mm-embeds language-model-only trust-request-chat-template enable-tokenizer-info-endpoint";
const IGNORED_LISTS = "middleware lora-modules allowed-origins allowed-methods allowed-headers " +
  "logits-processors";

function ignored(names: string, takes: OptionSpec["takes"]): OptionSpec[] {
  return names.split(" ").map((entry) => {
    const [name = "", short] = entry.split(":");
    return short === undefined ? { name, takes } : { name, short, takes };
  });
}

const ALL: readonly OptionSpec[] = [
  ...USED_OPTIONS,
  ...SIM_OPTIONS,
  ...ignored(IGNORED_VALUES, "value"),
  ...ignored(IGNORED_FLAGS, "flag"),
  ...ignored(IGNORED_LISTS, "list"),
  { name: "model", takes: "value" },
  { name: "help", short: "h", takes: "flag" },
  { name: "version", short: "v", takes: "flag" },
];
const BY_NAME: ReadonlyMap<string, OptionSpec> = new Map([
  ...ALL.map((spec): [string, OptionSpec] => [`--${spec.name}`, spec]),
  ...ALL.flatMap((spec): [string, OptionSpec][] =>
    spec.short === undefined ? [] : [[`-${spec.short}`, spec]]
  ),
]);

/** Thrown for a command line that cannot be understood. */
export class UsageError extends Error {}

export interface ParsedArguments {
  readonly positionals: readonly string[];
  /** Values by option name; a flag's is "true" or "false". */
  readonly values: ReadonlyMap<string, readonly string[]>;
}

/** Reads arguments. Underscores count as dashes, as in vLLM. @throws UsageError */
export function parseArguments(args: readonly string[]): ParsedArguments {
  const positionals: string[] = [];
  const values = new Map<string, string[]>();
  for (let index = 0; index < args.length; index += 1) {
    const argument = args[index] ?? "";
    if (!argument.startsWith("-") || argument === "-") {
      positionals.push(argument);
      continue;
    }
    const { spec, negated, inline } = lookUp(argument);
    const given = values.get(spec.name) ?? [];
    values.set(spec.name, given);
    if (spec.takes === "flag") {
      given.push(flagValue(argument, negated, inline));
    } else if (inline !== undefined) {
      given.push(inline);
    } else {
      const taken = valuesAfter(args, index, spec);
      given.push(...taken);
      index += taken.length;
    }
  }
  return { positionals, values };
}

function lookUp(argument: string): { spec: OptionSpec; negated: boolean; inline?: string } {
  const glued = /^(-[A-Z])(\d+)$/.exec(argument);
  if (glued !== null) return lookUp(`${glued[1]}=${glued[2]}`);
  const at = argument.indexOf("=");
  const inline = at < 0 ? {} : { inline: argument.slice(at + 1) };
  const written = at < 0 ? argument : argument.slice(0, at);
  const name = written.startsWith("--") ? written.replaceAll("_", "-") : written;
  // A member of a JSON option can be an option of its own: --kv-transfer-config.kv_role both
  const spec = BY_NAME.get(name) ?? BY_NAME.get(name.split(".", 1)[0] ?? name);
  if (spec !== undefined) return { spec, negated: false, ...inline };
  const positive = name.startsWith("--no-") ? BY_NAME.get(`--${name.slice(5)}`) : undefined;
  if (positive?.takes === "flag") return { spec: positive, negated: true, ...inline };
  throw new UsageError(`unknown option ${written}${suggestion(name)}`);
}

function flagValue(argument: string, negated: boolean, inline: string | undefined): string {
  const value = inline?.toLowerCase() ?? "true";
  if (value !== "true" && value !== "false") {
    throw new UsageError(`${argument}: a flag is true or false`);
  }
  return String((value === "true") !== negated);
}

function valuesAfter(args: readonly string[], index: number, spec: OptionSpec): string[] {
  const taken: string[] = [];
  for (let at = index + 1; at < args.length; at += 1) {
    const value = args[at] ?? "";
    // A negative number is a value; anything else that starts with a dash is the next option.
    if (value.startsWith("-") && !/^-\d/.test(value)) break;
    taken.push(value);
    if (spec.takes === "value") break;
  }
  if (taken.length === 0) throw new UsageError(`--${spec.name} needs a value`);
  return taken;
}

function suggestion(name: string): string {
  const near = [...BY_NAME.keys()].map((known) => ({ known, distance: distance(name, known) }))
    .sort((a, b) => a.distance - b.distance)[0];
  return near !== undefined && near.distance <= 3 ? `; did you mean ${near.known}?` : "";
}

/** Levenshtein distance. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, change));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
