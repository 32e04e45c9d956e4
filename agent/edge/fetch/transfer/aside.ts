/**
 * Where files lie until they are whole: in a folder of their own below the one that is put together,
 * under names made of a digest. A name beside the file, such as `NAME.part`, may be that of another
 * file of the source.
 */
import { createHash } from "node:crypto";
import { dirname, join } from "node:path";
import { ASIDE_FOLDER, LOCK_FILE } from "../../../core/weights/own_name.ts";

/** What earlier releases put beside a file. */
const FORMER = [".part", ".journal"] as const;
const FOLDER_MODE = 0o750;

/** Path for what belongs to the file `path` and is not whole; `what` begins with a dot. */
export function asidePath(folder: string, path: string, what: ".part" | ".journal"): string {
  return join(folder, ASIDE_FOLDER, `${nameOf(path)}${what}`);
}

/**
 * Makes the folders that `paths` need below `folder`, and takes over what an earlier release left
 * beside the files. Where its names were those of other files nobody can tell whose bytes they are:
 * those files come again.
 */
export async function openAside(folder: string, paths: readonly string[]): Promise<void> {
  const aside = join(folder, ASIDE_FOLDER);
  if (!await isThere(aside)) await takeOver(folder, paths);
  for (const each of new Set(paths.map((path) => dirname(join(folder, path))))) {
    await Deno.mkdir(each, { recursive: true, mode: FOLDER_MODE });
  }
}

/** All is whole: nothing is aside any more. */
export async function closeAside(folder: string): Promise<void> {
  await Deno.remove(join(folder, ASIDE_FOLDER), { recursive: true });
}

async function takeOver(folder: string, paths: readonly string[]): Promise<void> {
  const aside = join(folder, ASIDE_FOLDER);
  // It has its name once all is in it, so that a crash meanwhile is no end of it.
  const making = `${aside}.new`;
  await Deno.mkdir(making, { recursive: true, mode: FOLDER_MODE });
  const own = new Set(paths.flatMap(withFolders));
  for (const path of await isEmpty(folder) ? [] : paths) {
    const former = FORMER.map((what) => ({ at: join(folder, path + what), what }));
    if (FORMER.some((what) => own.has(path + what))) {
      for (const at of [join(folder, path), ...former.map(({ at }) => at)]) await drop(at);
    } else {
      for (const { at, what } of former) await move(at, join(making, `${nameOf(path)}${what}`));
    }
  }
  await Deno.rename(making, aside);
}

/** "a/b/c", "a/b" and "a". */
function withFolders(path: string): readonly string[] {
  const names = path.split("/");
  return names.map((_, index) => names.slice(0, index + 1).join("/"));
}

/** Nobody has fetched anything into it. */
async function isEmpty(folder: string): Promise<boolean> {
  for await (const { name } of Deno.readDir(folder)) {
    if (name !== LOCK_FILE && !name.startsWith(ASIDE_FOLDER)) return false;
  }
  return true;
}

function nameOf(path: string): string {
  return createHash("sha256").update(path).digest("hex");
}

async function isThere(path: string): Promise<boolean> {
  try {
    return (await Deno.lstat(path)).isDirectory;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

async function move(from: string, to: string): Promise<void> {
  try {
    await Deno.rename(from, to);
  } catch (error) {
    if (!isAbsent(error)) throw error;
  }
}

async function drop(path: string): Promise<void> {
  try {
    await Deno.remove(path, { recursive: true });
  } catch (error) {
    if (!isAbsent(error)) throw error;
  }
}

function isAbsent(error: unknown): boolean {
  if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory) {
    return true;
  }
  // With what was put behind it the name was too long, so nothing can bear it.
  return error instanceof Error && "code" in error && error.code === "ENAMETOOLONG";
}
