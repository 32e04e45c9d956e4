/**
 * The work before a shard's processes are started: which engine, which command line, and whether
 * what they need is there. What is refused here would fail in minutes, or in the first request.
 */
import { isAbsolute, join } from "node:path";
import { formatAddress } from "@heddle/common/address";
import { logger } from "@heddle/common/log";
import { contextWarning, type FitGpu, type FitRequest, misfit } from "@heddle/common/model/fits";
import { readLaunchArgs } from "@heddle/common/model/launch_args";
import type { ModelReading } from "@heddle/common/model/model_reading";
import type { Failure, FailureReason, Shard, ShardSpec } from "./core/shard/shard.ts";
import { adapterOf } from "./engines/adapters.ts";
import { engineEnvironment, type NodeEnvironment } from "./engines/environment.ts";
import type { EngineProcess, InstalledEngine, PortUse } from "./engines/engine.ts";
import { isPortFree } from "./edge/engine/port.ts";
import { readModel } from "./edge/model_reader.ts";

const log = logger("agent", "prepare");

/** Ranks listen to each other at addresses of their own choice: a port must be free at all of them. */
const ANY_ADDRESS = "0.0.0.0";

export interface PrepareOptions {
  readonly address: string;
  readonly modelDirs: readonly string[];
  /** Engines that work, in the order of the configuration. */
  readonly engines: readonly InstalledEngine[];
  environmentOf(engine: InstalledEngine): NodeEnvironment;
  /** Has the shard's weights fetched; absent: nothing is fetched. Rejects when the agent ends. */
  readonly fetch?: (want: NonNullable<ShardSpec["weights"]>) => Promise<Fetched>;
  /** What is known of the shard's GPUs now; absent: nothing. Never rejects. */
  readonly gpus?: () => Promise<readonly FitGpu[]>;
}

/** What comes of fetching weights. */
export type Fetched =
  | { readonly kind: "ready"; readonly path: string }
  | {
    readonly kind: "failed";
    readonly reason: string;
    readonly message: string;
    readonly permanent: boolean;
  };

export type Prepared =
  | { readonly kind: "prepared"; readonly processes: readonly EngineProcess[] }
  | { readonly kind: "failed"; readonly failure: Failure };

/** Works out the processes of a shard, with their whole environment. Starts nothing. */
export async function prepare(shard: Shard, options: PrepareOptions): Promise<Prepared> {
  const { spec } = shard;
  const engine = findEngine(shard, options);
  if (engine === undefined) return failed("engine_missing", missingEngine(shard, options));
  const adapter = adapterOf(engine.name);
  if (adapter === undefined) {
    return failed("engine_missing", `Cannot run ${spec.engine}: this agent does not know it`);
  }
  const fetched = spec.weights === undefined ? undefined : await options.fetch?.(spec.weights);
  if (fetched?.kind === "failed") {
    const { reason, message, permanent } = fetched;
    const text = `Cannot fetch ${spec.source}: ${message} (${reason})`;
    return failed("weights_not_fetched", text, permanent);
  }
  const source = fetched?.path ?? await locate(spec.source, options.modelDirs);
  const built = adapter.build({
    spec: { ...spec, source },
    engine,
    address: options.address,
    apiKey: shard.apiKey,
    modelDirs: options.modelDirs,
  });
  if (built.kind === "refused") return failed(built.reason, built.message, true);
  const lacking = await lackingFile(built.modelFile ?? source);
  if (lacking !== undefined) return failed("model_missing", lacking);
  const cannotFit = await unfit(spec, built.modelFile ?? source, options);
  if (cannotFit !== undefined) return cannotFit;
  const taken = await takenPort(built.ports, options.address);
  if (taken !== undefined) return failed("port_in_use", `Cannot start ${spec.engine}: ${taken}`);
  const node = options.environmentOf(engine);
  return {
    kind: "prepared",
    processes: built.processes.map(({ name, argv, env }) => ({
      name,
      argv,
      env: engineEnvironment(spec, node, { path: engine.path, adapter: env }),
    })),
  };
}

// What the engine would find out after minutes, from the model's files and the cards.
async function unfit(
  spec: ShardSpec,
  source: string,
  options: PrepareOptions,
): Promise<Prepared | undefined> {
  const cannot = `Cannot start ${spec.engine}`;
  const read: ModelReading = isAbsolute(source) ? await readModel(source) : { facts: {} };
  if (read.problem !== undefined) {
    return failed("model_file_damaged", `${cannot}: ${read.problem}`, true);
  }
  const request: FitRequest = {
    engine: spec.engine,
    tp: Math.max(1, spec.tp),
    pp: Math.max(1, spec.pp),
    gpus: await options.gpus?.() ?? [],
    args: readLaunchArgs(spec.args),
    model: read.facts,
    ...(read.weightBytes === undefined ? {} : { weightBytes: read.weightBytes }),
  };
  const found = misfit(request);
  if (found === undefined) {
    const warning = contextWarning(request);
    if (warning !== undefined) log.warning(warning, { shard: spec.shardId });
    return undefined;
  }
  return failed(found.reason, `${cannot}: ${found.message}`, found.permanent);
}

// An engine finds out only after it has loaded its weights, and says so in a worker's traceback.
async function takenPort(
  ports: readonly PortUse[],
  address: string,
): Promise<string | undefined> {
  for (const { port, use, internal } of ports) {
    const host = internal === true ? ANY_ADDRESS : address;
    if (await isPortFree(host, port)) continue;
    const where = internal === true ? `port ${port}` : formatAddress({ host: address, port });
    return `another program listens on ${where}, which it needs for ${use}. See who with ` +
      `\`ss -lntp sport = :${port}\`, and keep others out of engine_ports`;
  }
  return undefined;
}

function findEngine(shard: Shard, options: PrepareOptions): InstalledEngine | undefined {
  const { engine, engineVersion } = shard.spec;
  return options.engines.find(({ name, version }) =>
    name === engine && (engineVersion === "" || engineVersion === version)
  );
}

function missingEngine({ spec }: Shard, options: PrepareOptions): string {
  const wanted = spec.engineVersion === "" ? spec.engine : `${spec.engine} ${spec.engineVersion}`;
  const has = options.engines.map(({ name, version }) => `${name} ${version}`).join(", ") || "none";
  return `Cannot run ${wanted}: of the engines in agent.yaml these work: ${has}`;
}

// A path relative to one of the folders with weights, the first one first; else as it is.
async function locate(source: string, modelDirs: readonly string[]): Promise<string> {
  if (isAbsolute(source) || source.split("/").includes("..")) return source;
  for (const folder of modelDirs) {
    const path = join(folder, source);
    try {
      await Deno.stat(path);
      return path;
    } catch {
      // Not there, or not to be seen; the next one may have it.
    }
  }
  return source;
}

// Weights named by a hub's name are found by the engine itself, in its cache.
async function lackingFile(source: string): Promise<string | undefined> {
  if (!isAbsolute(source)) return undefined;
  try {
    await Deno.stat(source);
    return undefined;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) {
      return `Cannot read the model: ${source} does not exist on this node`;
    }
    // The agent may not look there; the engine may.
    return undefined;
  }
}

function failed(reason: FailureReason, message: string, permanent = false): Prepared {
  return { kind: "failed", failure: { reason, message, permanent, logTail: [] } };
}
