/** The files of this checkout, for tools that read all of them. */
import { fileURLToPath } from "node:url";
import { isForTests } from "./lint/place.ts";

/** The repository's root, without a trailing slash. */
export const ROOT: string = fileURLToPath(new URL("..", import.meta.url)).replace(/\/$/, "");

/** One text file, by its path from the root. */
export interface SourceFile {
  readonly path: string;
  readonly text: string;
}

/** Folders that hold nothing written by hand, wherever they are. */
const SKIPPED: ReadonlySet<string> = new Set([
  ".git",
  ".heddle",
  "dist",
  "node_modules",
  "__pycache__",
]);

/** Larger files are data; nobody wrote them line by line. */
const TEXT_BYTES_MAX = 1024 * 1024;

/**
 * Every text file below `root`, sorted by path; generated code and fixtures included, so that each
 * rule can say itself what it leaves out. Files that vanish while it looks are left out.
 */
export function readSources(root: string): readonly SourceFile[] {
  const files: SourceFile[] = [];
  walk(root, "", files);
  return files.sort((a, b) => (a.path < b.path ? -1 : 1));
}

function walk(root: string, folder: string, files: SourceFile[]): void {
  for (const entry of Deno.readDirSync(`${root}/${folder}`)) {
    const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory && !SKIPPED.has(entry.name)) walk(root, path, files);
    if (!entry.isFile) continue;
    const text = readText(`${root}/${path}`);
    if (text !== undefined) files.push({ path, text });
  }
}

function readText(file: string): string | undefined {
  try {
    if (Deno.statSync(file).size > TEXT_BYTES_MAX) return undefined;
    return new TextDecoder("utf-8", { fatal: true }).decode(Deno.readFileSync(file));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof TypeError) return undefined;
    throw error;
  }
}

/** TypeScript that people write: no generated code, no fixtures. */
export function isWritten(path: string): boolean {
  return /\.tsx?$/.test(path) && !path.startsWith("proto/gen/") && !isFixture(path);
}

/** Recorded or made-up input of tests. */
export function isFixture(path: string): boolean {
  return path.startsWith("tests/fixtures/") || /(?:^|\/)fixtures\//.test(path);
}

/** All of tests/, and what a room holds only for its tests. */
export function isTest(path: string): boolean {
  return path.startsWith("tests/") || isForTests(path);
}

/** Code that ships in a program. */
export function isProduct(path: string): boolean {
  return isWritten(path) && !isTest(path) &&
    /^(?:router|control|agent|ctl|sim|common|proto)\//.test(path);
}
