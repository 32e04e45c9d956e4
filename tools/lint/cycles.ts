import { eachImport } from "./each_import.ts";
import { placeOf } from "./place.ts";
import { targetOf } from "./target.ts";

/**
 * No import cycles, type-only ones included: files in a cycle can only be read, moved and tested
 * together. Found by following imports on disk from each file; `importsOf` answers for a path from
 * the repository's root with the paths it imports, so that a test needs no files.
 */
export function cycles(root: string, importsOf: ImportsOf): Deno.lint.Rule {
  return {
    create(ctx) {
      const place = placeOf(ctx.filename, root);
      if (place === undefined) return {};
      return eachImport(({ node, specifier }) => {
        const target = targetOf(specifier, place.path);
        if (target.kind !== "file") return;
        const way = pathBack(target.path, place.path, importsOf);
        if (way === undefined) return;
        ctx.report({
          node,
          message: `Import cycle: ${[place.path, ...way].join(" → ")}. Move what both need into ` +
            "a third file, or pass it in as an argument",
        });
      });
    },
  };
}

/** The paths that a file imports by relative path, both given from the repository's root. */
export type ImportsOf = (path: string) => readonly string[];

/** The shortest chain of imports from `from` to `to`, both included, or undefined. */
function pathBack(from: string, to: string, importsOf: ImportsOf): readonly string[] | undefined {
  const cameFrom = new Map<string, string | undefined>([[from, undefined]]);
  const queue = [from];
  for (let path = queue.shift(); path !== undefined; path = queue.shift()) {
    if (path === to) return chain(path, cameFrom);
    for (const next of importsOf(path)) {
      if (cameFrom.has(next)) continue;
      cameFrom.set(next, path);
      queue.push(next);
    }
  }
  return undefined;
}

function chain(end: string, cameFrom: ReadonlyMap<string, string | undefined>): string[] {
  const way: string[] = [];
  for (let at: string | undefined = end; at !== undefined; at = cameFrom.get(at)) way.unshift(at);
  return way;
}

/**
 * `ImportsOf` over the files below `root`. A file that cannot be read imports nothing: `deno check`
 * is what reports it. Read again only when its modification time changes, for editors' sake.
 */
export function importsOnDisk(root: string): ImportsOf {
  const known = new Map<string, { mtime: number; imports: readonly string[] }>();
  return (path) => {
    try {
      const file = `${root}/${path}`;
      const mtime = Deno.statSync(file).mtime?.getTime() ?? 0;
      const before = known.get(path);
      if (before?.mtime === mtime) return before.imports;
      const imports = relativeImports(Deno.readTextFileSync(file), path);
      known.set(path, { mtime, imports });
      return imports;
    } catch {
      return [];
    }
  };
}

/**
 * The relative imports in `source`. By pattern, not by parser: a `from "./x.ts"` inside a comment or
 * string may add an edge, which at worst names a cycle that a reader can see is none.
 */
function relativeImports(source: string, path: string): readonly string[] {
  const found = new Set<string>();
  const pattern = /(?:^|[\s;}])(?:from|import)\s*\(?\s*["'](\.{1,2}\/[^"'\n]+)["']/g;
  for (const match of source.matchAll(pattern)) {
    const target = targetOf(match[1] ?? "", path);
    if (target.kind === "file") found.add(target.path);
  }
  return [...found];
}
