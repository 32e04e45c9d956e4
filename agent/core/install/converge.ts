/** What a node does about the engines that control wants: pure, so that every case can be tried. */
import type { Plain } from "@heddle/proto/plain";
import type { EngineWanted } from "@heddle/proto/gen/engines";
import type { InstallReason } from "./install_documents.ts";

/** After a failure: doubling, from a minute to ten. */
const RETRY_FIRST_MS = 60_000;
const RETRY_MAX_MS = 600_000;

export interface InstallFailure {
  readonly reason: InstallReason;
  readonly message: string;
  /** In a row. */
  readonly count: number;
  readonly at: number;
}

/** What another try cannot help: it is not for this machine. */
const HOPELESS: ReadonlySet<InstallReason> = new Set<InstallReason>([
  "unsupported",
  "no_digest",
  "archive_refused",
  "wrong_architecture",
  // A new driver comes with a restart, and with it another try.
  "driver_too_old",
]);

/** When a failure is tried again; undefined: not before what is wanted changes. */
export function retryAt({ reason, count, at }: InstallFailure): number | undefined {
  if (HOPELESS.has(reason)) return undefined;
  return at + Math.min(RETRY_FIRST_MS * 2 ** (count - 1), RETRY_MAX_MS);
}

/** How long a version that nobody wants or uses stays: who takes a release back wants it again. */
const KEEP_UNUSED_MS = 600_000;

/** Names one wanted engine; another mirror or other packages make it another one. */
export function wantedKey(wanted: Plain<EngineWanted>): string {
  const { name, version, releases, index, packages } = wanted;
  return JSON.stringify([name, version, releases, index, packages]);
}

/** Name of its folder. */
export function engineFolder({ name, version }: Pick<EngineWanted, "name" | "version">): string {
  return `${name}-${version}`;
}

/** The next one to install; undefined when there is none now. One at a time: they load the node. */
export function nextInstall(
  wanted: readonly Plain<EngineWanted>[],
  state: {
    readonly installed: ReadonlySet<string>;
    readonly failures: ReadonlyMap<string, InstallFailure>;
  },
  now: number,
): Plain<EngineWanted> | undefined {
  return wanted.find((each) => {
    if (state.installed.has(engineFolder(each))) return false;
    const failure = state.failures.get(wantedKey(each));
    if (failure === undefined) return true;
    const at = retryAt(failure);
    return at !== undefined && now >= at;
  });
}

/** What is used on this node: paths of programs, and engines of which the program is not known. */
export interface EnginesInUse {
  readonly programs: readonly string[];
  readonly engines: ReadonlySet<string>;
}

/** An engine as it lies in the folder. */
export interface InstalledVersion {
  readonly name: string;
  readonly version: string;
  /** Of its folder. */
  readonly folder: string;
}

/**
 * Which installed versions nobody wants and nobody uses, as folders' names, and since when:
 * `before` is the last answer. Nothing is unused where control has not said what it wants.
 */
export function unusedSince(
  { installed, wanted, inUse }: {
    readonly installed: readonly InstalledVersion[];
    readonly wanted: readonly Pick<EngineWanted, "name" | "version">[] | undefined;
    readonly inUse: EnginesInUse;
  },
  before: ReadonlyMap<string, number>,
  now: number,
): ReadonlyMap<string, number> {
  if (wanted === undefined) return new Map();
  const kept = new Set(wanted.map(engineFolder));
  return new Map(
    installed.filter((each) => !kept.has(engineFolder(each)) && !isUsed(each, inUse))
      .map((each) => [engineFolder(each), before.get(engineFolder(each)) ?? now]),
  );
}

/** Those that have been unused for long enough to go. */
export function removable(unused: ReadonlyMap<string, number>, now: number): readonly string[] {
  return [...unused].filter(([, since]) => now - since >= KEEP_UNUSED_MS).map(([name]) => name);
}

function isUsed({ name, folder }: InstalledVersion, { programs, engines }: EnginesInUse): boolean {
  return engines.has(name) || programs.some((path) => path.startsWith(`${folder}/`));
}
