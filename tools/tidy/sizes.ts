import { isForTests } from "../lint/place.ts";
import { isTest, isWritten, type SourceFile } from "../repository.ts";

/** Longest function in lines: what fits on a screen, so that it can be read without scrolling. */
export const FUNCTION_LINES_MAX = 70;

/** Longest file in lines: past this it holds more than one idea. */
export const FILE_LINES_MAX = 400;

/** The same for tests: most of their lines are a table of cases, read one at a time. */
export const TEST_FILE_LINES_MAX = 600;

/** Most source files in one folder, tests not counted: more is a list that nobody reads. */
export const FOLDER_FILES_MAX = 12;

/** What is over a limit: its name, and how large it is. */
export type Oversize = ReadonlyMap<string, number>;

/**
 * Functions over the limit, as `path name`. An anonymous one is named after its first line. One that
 * only holds tests or steps is a list of functions, and those are measured.
 */
export function longFunctions(files: readonly SourceFile[]): Oversize {
  const found = new Map<string, number>();
  for (const { path, text } of files) {
    if (!isWritten(path)) continue;
    for (const { name, lines } of functionsOf(path, text)) {
      if (lines > FUNCTION_LINES_MAX) found.set(`${path} ${name}`, lines);
    }
  }
  return found;
}

interface Measured {
  readonly name: string;
  readonly lines: number;
}

/** Every function of a file, measured on the parsed source. Works only inside `deno test`. */
function functionsOf(path: string, text: string): readonly Measured[] {
  const found: Measured[] = [];
  const measure = (node: Deno.lint.Node): void => {
    const source = text.slice(...node.range);
    if (isTest(path) && /\bDeno\.test\(|\.step\(/.test(source)) return;
    found.push({ name: nameOf(node, source), lines: source.split("\n").length });
  };
  const plugin: Deno.lint.Plugin = {
    name: "measure",
    rules: {
      functions: {
        create: () => ({
          FunctionDeclaration: measure,
          FunctionExpression: measure,
          ArrowFunctionExpression: measure,
        }),
      },
    },
  };
  Deno.lint.runPlugin(plugin, path, text);
  return found;
}

function nameOf(node: Deno.lint.Node, source: string): string {
  if (node.type === "FunctionDeclaration") return node.id?.name ?? "default";
  const parent = "parent" in node ? node.parent : undefined;
  if (parent?.type === "VariableDeclarator" && parent.id.type === "Identifier") {
    return parent.id.name;
  }
  if (parent?.type === "MethodDefinition" && parent.key.type === "Identifier") {
    return parent.key.name;
  }
  if (parent?.type === "CallExpression" && parent.arguments[0]?.type === "Literal") {
    return String(parent.arguments[0].value);
  }
  return (source.split("\n")[0] ?? "").trim();
}

/** Files over the limit, by path. */
export function longFiles(files: readonly SourceFile[]): Oversize {
  return new Map(
    files.filter(({ path }) => isWritten(path))
      .map(({ path, text }) => [path, text.replace(/\n$/, "").split("\n").length] as const)
      .filter(([path, lines]) => lines > (isTest(path) ? TEST_FILE_LINES_MAX : FILE_LINES_MAX)),
  );
}

/** Folders with too many source files, by path. */
export function fullFolders(files: readonly SourceFile[]): Oversize {
  const counts = new Map<string, number>();
  for (const { path } of files) {
    if (!isWritten(path) || isForTests(path)) continue;
    const folder = path.replace(/\/?[^/]*$/, "");
    counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  return new Map([...counts].filter(([folder, count]) => count > folderLimit(folder)));
}

/** common/, a noun a file, and the folders of tools are flat by design and may hold more. */
function folderLimit(folder: string): number {
  return folder === "common" || folder.startsWith("tools/") ? 20 : FOLDER_FILES_MAX;
}

/**
 * Type casts (`x as T`, but `as const` is none) per file, tests left out: each one is a claim that
 * nothing checks. A comment on its line, or on the line above, that says why it holds excuses one.
 */
export function casts(files: readonly SourceFile[]): Oversize {
  const found = new Map<string, number>();
  for (const { path, text } of files) {
    if (!isWritten(path) || isTest(path) || !/\bas\b/.test(text)) continue;
    let count = 0;
    const plugin: Deno.lint.Plugin = {
      name: "measure",
      rules: {
        casts: {
          create: () => ({
            TSAsExpression(node) {
              if (!isConst(node.typeAnnotation) && !isExcused(text, node.range[0])) count++;
            },
          }),
        },
      },
    };
    Deno.lint.runPlugin(plugin, path, text);
    if (count > 0) found.set(path, count);
  }
  return found;
}

function isExcused(text: string, at: number): boolean {
  const before = text.slice(0, at).split("\n");
  const rest = text.slice(at).split("\n")[0] ?? "";
  const above = before.at(-2) ?? "";
  return `${before.at(-1)}${rest}`.includes("//") || /^\s*(?:\/\/|\*|\/\*)/.test(above);
}

function isConst(type: Deno.lint.TypeNode): boolean {
  return type.type === "TSTypeReference" && type.typeName.type === "Identifier" &&
    type.typeName.name === "const";
}

/**
 * Compares what is over a limit with the exceptions on record. The record may only shrink: a new
 * exception, a grown one, and one that is better than its record are all named.
 */
export function ratchet(found: Oversize, record: Readonly<Record<string, number>>): string[] {
  const worse = [...found].filter(([name, size]) => size > (record[name] ?? 0))
    .map(([name, size]) =>
      record[name] === undefined
        ? `${name}: ${size} is over the limit`
        : `${name}: grew from ${record[name]} to ${size}`
    );
  const better = Object.entries(record).filter(([name, size]) => (found.get(name) ?? 0) < size)
    .map(([name, size]) =>
      `${name}: is better than the record (${size}): write ${found.get(name) ?? "nothing"} there`
    );
  return [...worse, ...better];
}
