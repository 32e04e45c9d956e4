/** What an engine's adapter is: a pure description of how to run one kind of engine. */
import { isOlder } from "../core/version_order.ts";
import type { LoadNames } from "../core/engine_load.ts";
import type { FailureReason, ShardSpec } from "../core/shard/shard.ts";

export type Environment = Readonly<Record<string, string>>;

/** An engine that is installed on this node. */
export interface InstalledEngine {
  readonly name: string;
  /** Absolute path of its program, or of the Python that has it. */
  readonly path: string;
  readonly version: string;
}

/** What a command line depends on, apart from the node's environment. */
export interface LaunchInput {
  readonly spec: ShardSpec;
  readonly engine: InstalledEngine;
  /** This node's management address: engines bind it and never all interfaces. */
  readonly address: string;
  /** What the engine must demand; empty on ranks that serve no HTTP. */
  readonly apiKey: string;
  /** Folders in which weights are looked for, the first one first. */
  readonly modelDirs: readonly string[];
}

export interface EngineProcess {
  /** "server", or what it is beside the server. */
  readonly name: string;
  readonly argv: readonly string[];
  readonly env: Environment;
}

/** A port that a shard's processes are going to listen on. */
export interface PortUse {
  readonly port: number;
  /** What for, as it stands in a sentence: "its rendezvous". */
  readonly use: string;
  /** Among the ranks alone, at whatever address; left out: HTTP at the management address. */
  readonly internal?: true;
}

export type Built =
  /** In the order in which they are started; the last one is the server. */
  | {
    readonly kind: "processes";
    readonly processes: readonly EngineProcess[];
    /** A file that must exist before anything is started. */
    readonly modelFile?: string;
    /** All that it will listen on whose number is known. */
    readonly ports: readonly PortUse[];
  }
  | { readonly kind: "refused"; readonly reason: FailureReason; readonly message: string };

export interface EngineAdapter {
  readonly name: string;
  /** Arguments that make `path` print its version. */
  versionArgs(path: string): readonly string[];
  /** The processes of one shard. Pure: the same input gives the same command lines. */
  build(input: LaunchInput): Built;
  readonly load: LoadNames;
}

/** The port of its HTTP server, on the rank that has one. */
export function httpPort({ rank, portFirst }: ShardSpec): readonly PortUse[] {
  return rank === 0 ? [{ port: portFirst, use: "HTTP" }] : [];
}

export function refused(reason: FailureReason, message: string): Built {
  return { kind: "refused", reason, message };
}

/** Flags that an engine has had only since some version, with what they are needed for. */
export type FlagsSince = Readonly<
  Record<string, { readonly version: string; readonly need: string }>
>;

/** The refusal of what the installed version cannot do; undefined when all of `argv` is known to it. */
export function tooOld(
  { name, version }: InstalledEngine,
  argv: readonly string[],
  since: FlagsSince,
): Built | undefined {
  for (const flag of argv) {
    const known = Object.hasOwn(since, flag) ? since[flag] : undefined;
    if (known === undefined || !isOlder(version, known.version)) continue;
    return refused(
      "engine_too_old",
      `Cannot start ${name} ${version}: ${known.need} needs ${flag}, which ${name} has since ` +
        `${known.version}. Install that or a newer one`,
    );
  }
  return undefined;
}

/** True for a path such as "/opt/venv/bin/python3.12": the engine is a module of that Python. */
export function isPython(path: string): boolean {
  return /(?:^|\/)python[0-9.]*$/.test(path);
}

/** One GPU index per GPU of the shard, in the order of PCI addresses. */
export function gpusPerStage(spec: ShardSpec): number {
  return Math.max(1, spec.tp) * Math.max(1, spec.pp);
}
