/**
 * llama.cpp's server. Port and context are always said: its defaults changed between versions, and
 * what is not said it fits to the memory it finds, down to a context that serves nobody.
 */
import { type Built, type EngineAdapter, httpPort, type LaunchInput, refused } from "./engine.ts";
import { CAME, WENT } from "./llamacpp_flags.ts";

/**
 * The oldest build that is known to read its key from the environment. One that does not would
 * serve anyone.
 */
const KEY_SINCE = 4_231;
/** Older ones may not know the flag; the model is a file that is there, so nothing would be fetched. */
const OFFLINE_SINCE = 5_937;

/** For a profile that does not say `-c`; 0 would be the model's own, often more than fits. */
const CONTEXT_DEFAULT = 4096;

export const llamacpp: EngineAdapter = {
  name: "llamacpp",
  versionArgs: () => ["--version"],
  build,
  load: {
    running: ["llamacpp:requests_processing"],
    waiting: ["llamacpp:requests_deferred"],
    // It has no such metric any more.
    kvUsage: ["llamacpp:kv_cache_usage_ratio"],
    progress: [
      // Counts at once; tokens are counted when their request has ended.
      "llamacpp:n_decode_total",
      "llamacpp:tokens_predicted_total",
      "llamacpp:prompt_tokens_total",
    ],
  },
};

function build({ spec, engine, address, apiKey, modelDirs }: LaunchInput): Built {
  if (spec.launchMode === "ray") {
    return refused(
      "launch_mode_unsupported",
      "Cannot start llamacpp with launch_mode ray: it serves from one process, leave it out",
    );
  }
  if (spec.shardCount > 1) {
    return refused(
      "parallel_layout_unsupported",
      `Cannot run llamacpp on ${spec.shardCount} nodes: it serves from one`,
    );
  }
  const file = modelFile(spec.source, modelDirs);
  if (file === undefined) {
    return refused(
      "model_source_unsupported",
      `Cannot serve "${spec.source}" with llamacpp: want a .gguf file, as an absolute path or ` +
        "relative to one of model_dirs",
    );
  }
  const build = buildNumber(engine.version);
  const unknown = build === undefined ? undefined : notOfBuild(build, spec.args);
  if (unknown !== undefined) return unknown;
  return {
    kind: "processes",
    modelFile: file,
    ports: httpPort(spec),
    processes: [{
      name: "server",
      argv: [
        engine.path,
        ...["-m", file, "--alias", spec.model],
        ...["--host", address, "--port", String(spec.portFirst)],
        ...(says(spec.args, ["-c", "--ctx-size"]) ? [] : ["-c", String(CONTEXT_DEFAULT)]),
        ...layers(spec.args, spec.gpus.length),
        "--metrics",
        ...(build !== undefined && build < OFFLINE_SINCE ? [] : ["--offline"]),
        ...spec.args,
      ],
      env: apiKey === "" ? {} : { LLAMA_API_KEY: apiKey },
    }],
  };
}

/** Undefined for a server that was not built from a release: such a one says 0 or 1. */
function buildNumber(version: string): number | undefined {
  const digits = /^b?(\d{3,7})$/.exec(version)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** The refusal of what that build cannot do; undefined when nothing is known to be wrong. */
function notOfBuild(build: number, args: readonly string[]): Built | undefined {
  const cannot = `Cannot start llamacpp ${build}`;
  if (build < KEY_SINCE) {
    return refused(
      "engine_too_old",
      `${cannot}: it is not known to read the replica's key (LLAMA_API_KEY) from its environment, ` +
        `which llamacpp does since ${KEY_SINCE} at the latest; without it anyone could use the ` +
        "GPUs. Install a newer one",
    );
  }
  for (const flag of args.map((arg) => arg.replace(/=.*/, ""))) {
    const came = CAME.find(({ lacking, flags }) => build <= lacking && flags.includes(flag));
    if (came !== undefined) {
      return refused(
        "engine_too_old",
        `${cannot}: the profile gives it ${flag}, which llamacpp has since ${came.has} at the ` +
          "latest. Install that or a newer one, or leave the flag out",
      );
    }
    const went = WENT.find(({ lacking, flags }) => build >= lacking && Object.hasOwn(flags, flag));
    if (went !== undefined) {
      return refused(
        "engine_too_new",
        `${cannot}: the profile gives it ${flag}, which llamacpp has no more since ` +
          `${went.lacking} at the latest. Give ${went.flags[flag]} instead`,
      );
    }
  }
  return undefined;
}

// Every layer on the GPUs, or none: what would half fit must fail, not crawl.
function layers(args: readonly string[], gpuCount: number): readonly string[] {
  if (says(args, ["-ngl", "--gpu-layers", "--n-gpu-layers"])) return [];
  return ["-ngl", gpuCount > 0 ? "999" : "0"];
}

function says(args: readonly string[], flags: readonly string[]): boolean {
  return args.some((arg) => flags.some((flag) => arg === flag || arg.startsWith(`${flag}=`)));
}

// Relative to the first folder when there are several: the caller checks that the file exists.
function modelFile(source: string, modelDirs: readonly string[]): string | undefined {
  if (!/\.gguf$/i.test(source) || source.split("/").includes("..")) return undefined;
  if (source.startsWith("/")) return source;
  return modelDirs[0] === undefined ? undefined : `${modelDirs[0]}/${source}`;
}
