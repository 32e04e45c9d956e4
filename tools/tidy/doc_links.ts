import type { SourceFile } from "../repository.ts";

/** Folders of the repository that documents name files in. */
const PATH =
  /`((?:\.ci|agent|ansible|bin|common|control|ctl|docs|examples|proto|router|schema|sim|tests|tools)\/[\w./-]+)`/g;
const LINK = /\]\((?!https?:|#|mailto:)([^)#\s]+)[^)]*\)/g;
const TASK = /\bdeno(?:@[\d.]+)? task (?:--quiet )?([a-z][\w:-]*)/g;

/**
 * What documents name and the repository does not have: files in backquotes, links to files, and
 * tasks. A path with a word in capitals (`agent/engines/NAME.ts`) is a pattern and is not looked up.
 */
export function deadReferences(
  files: readonly SourceFile[],
  exists: (path: string) => boolean,
  tasks: readonly string[],
): readonly string[] {
  return files.filter(({ path }) => path.endsWith(".md")).flatMap(({ path, text }) => {
    const folder = path.includes("/") ? path.replace(/[^/]*$/, "") : "";
    const named = [...text.matchAll(PATH)].map((match) => match[1] ?? "")
      .filter((name) => !/(?:^|\/)[A-Z]{3,}/.test(name));
    const linked = [...text.matchAll(LINK)].map((match) => normalize(`${folder}${match[1]}`));
    const missing = [...new Set([...named, ...linked])].filter((name) => !exists(name))
      .map((name) => `${path}: names ${name}, which does not exist`);
    const started = [...text.matchAll(TASK)].map((match) => match[1] ?? "");
    return [
      ...missing,
      ...[...new Set(started)].filter((task) => !tasks.includes(task))
        .map((task) => `${path}: names the task "${task}", which deno.json does not have`),
    ];
  });
}

function normalize(path: string): string {
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== ".") parts.push(part);
  }
  return parts.join("/");
}
