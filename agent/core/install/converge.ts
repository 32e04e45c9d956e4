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
]);

/** When a failure is tried again; undefined: not before what is wanted changes. */
export function retryAt({ reason, count, at }: InstallFailure): number | undefined {
  if (HOPELESS.has(reason)) return undefined;
  return at + Math.min(RETRY_FIRST_MS * 2 ** (count - 1), RETRY_MAX_MS);
}

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
