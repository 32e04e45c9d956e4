import { isProduct, isWritten, type SourceFile } from "../repository.ts";

const EXPORTED =
  /^export (?:async )?(?:abstract )?(const|function\*?|class|interface|type|enum) (\w+)/gm;

/**
 * Exports of the product that no other file names. By word, not by binding: a name that two files
 * export counts as used when a third says it, which is cheap and never accuses wrongly. A type that
 * its own file uses again is part of another export's signature, and stays.
 */
export function deadExports(files: readonly SourceFile[]): readonly string[] {
  const namedIn = filesPerWord(files);
  return files.filter(({ path }) => isProduct(path)).flatMap(({ path, text }) =>
    [...text.matchAll(EXPORTED)]
      .filter(([, kind, name = ""]) => {
        if ((namedIn.get(name) ?? 0) > 1) return false;
        const isType = kind === "interface" || kind === "type";
        return !isType || (text.match(new RegExp(`\\b${name}\\b`, "g")) ?? []).length < 2;
      })
      .map(([, , name]) =>
        `${path}: "${name}" is exported and nobody imports it: drop the export, or all of it`
      )
  );
}

function filesPerWord(files: readonly SourceFile[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { path, text } of files) {
    if (!isWritten(path)) continue;
    for (const word of new Set(text.match(/[A-Za-z_$][\w$]*/g) ?? [])) {
      counts.set(word, (counts.get(word) ?? 0) + 1);
    }
  }
  return counts;
}
