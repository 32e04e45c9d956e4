/** Where a file stands in the layout: which room it is in, and how deep. The lint rules judge by it. */

/** Programs. A room imports itself, proto and common; never another room. */
export const ROOMS: readonly string[] = ["router", "control", "agent", "ctl", "sim"];

/** Workspace members that rooms import by name. */
export const SHARED: readonly string[] = ["proto", "common"];

/**
 * Layers of a room, deepest last: root → edge → engines → core, and a file imports only what is as
 * deep as itself or deeper. `engines/` holds the agent's adapters: edge starts what they describe.
 * Any other folder of a room (`commands/`) counts as its root.
 */
export type Layer = "root" | "edge" | "engines" | "core";

const DEPTH: Readonly<Record<Layer, number>> = { root: 0, edge: 1, engines: 2, core: 3 };

/** A file's place in the repository. */
export interface Place {
  /** First folder of the path: a room, `proto`, `common`, or anything else (`tests`, `tools`). */
  readonly room: string;
  readonly layer: Layer;
  /** Path from the repository's root, with `/`. */
  readonly path: string;
  /** Tests, fakes, benches and contract tests: they may import more, as each rule says. */
  readonly test: boolean;
}

/** The place of an absolute path below `root` (no trailing slash), or undefined when it is not below it. */
export function placeOf(file: string, root: string): Place | undefined {
  if (!file.startsWith(`${root}/`)) return undefined;
  return placeOfPath(file.slice(root.length + 1));
}

/** The place of a path that starts at the repository's root. */
export function placeOfPath(path: string): Place {
  const parts = path.split("/");
  const folder = parts.length > 2 ? parts[1] : undefined;
  const layer: Layer = folder === "edge" || folder === "engines" || folder === "core"
    ? folder
    : "root";
  return { room: parts[0] ?? "", layer, path, test: isForTests(path) };
}

/**
 * Whether a file is there for tests only: a test, a fake, a bench, a contract that several
 * implementations are held to, or anything in a `testing/` folder.
 */
export function isForTests(path: string): boolean {
  return /(?:^|[_/])(?:test|fake|bench|contract)\.tsx?$|\/testing\//.test(path);
}

/** Whether `from` may import `to`, both in one room, as far as layers go. */
export function pointsDown(from: Layer, to: Layer): boolean {
  return DEPTH[from] <= DEPTH[to];
}
