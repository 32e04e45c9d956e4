/**
 * Removes weights that Heddle fetched, and nothing else: a folder directly inside Heddle's own, under
 * a name that Heddle makes, no link, with Heddle's own list of what it holds. What others put among
 * the files goes with them only where it is no folder of theirs.
 */
import { join } from "node:path";
import { readTextIfExists } from "@heddle/common/atomic_file";
import { errorText } from "@heddle/proto/error";
import { decodeManifest, type FetchRequest, type ReportOf } from "../../core/weights/documents.ts";
import { WeightsError } from "../../core/weights/failure.ts";
import { isFolderName, MANIFEST_FILE, wantOfPartial } from "../../core/weights/own_name.ts";

const TRASH = ".trash-";
const LOCK = ".lock";

/** Throws `not_ours`, `in_use` or `system_error`. What is gone already is removed. */
export async function removeWeights(request: FetchRequest): Promise<ReportOf<"removed">> {
  const { into, folder } = request;
  const partial = wantOfPartial(folder) !== undefined;
  if (!isFolderName(folder) && !partial) {
    throw new WeightsError("not_ours", `"${folder}" is no name of what Heddle fetched`);
  }
  const path = join(into, folder);
  let info: Deno.FileInfo;
  try {
    info = await Deno.lstat(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return { kind: "removed", freed_bytes: 0 };
    throw new WeightsError("system_error", `Cannot look at ${path}: ${errorText(error)}`);
  }
  if (info.isSymlink || !info.isDirectory) {
    throw new WeightsError("not_ours", `${path} is no folder but a ${kindOf(info)}`);
  }
  if (partial) await demandNobodyFetches(path);
  else await demandManifest(path, folder);
  const freed = await bytesBelow(path);
  // From here on it does not count any more, wherever a crash ends this.
  const trash = join(into, `${TRASH}${crypto.randomUUID()}`);
  await Deno.rename(path, trash);
  // Links in it are removed, and not what they lead to.
  await Deno.remove(trash, { recursive: true });
  return { kind: "removed", freed_bytes: freed };
}

/** What a removal that was ended left. */
export async function emptyTrash(into: string): Promise<void> {
  try {
    for await (const { name, isDirectory } of Deno.readDir(into)) {
      if (isDirectory && name.startsWith(TRASH)) {
        await Deno.remove(join(into, name), { recursive: true });
      }
    }
  } catch {
    // The next one tries again.
  }
}

async function demandManifest(path: string, folder: string): Promise<void> {
  const text = await readTextIfExists(join(path, MANIFEST_FILE)).catch(() => undefined);
  if (text === undefined || decodeManifest(text) === undefined) {
    throw new WeightsError("not_ours", `${path} (${folder}) lacks Heddle's list of what it holds`);
  }
}

async function demandNobodyFetches(path: string): Promise<void> {
  const file = await Deno.open(join(path, LOCK), { write: true, create: true, mode: 0o640 });
  const free = await file.tryLock(true).finally(() => file.close());
  if (!free) throw new WeightsError("in_use", `${path} is being fetched now`);
}

async function bytesBelow(path: string): Promise<number> {
  let bytes = 0;
  for await (const { name, isDirectory, isSymlink } of Deno.readDir(path)) {
    if (isSymlink) continue;
    const at = join(path, name);
    bytes += isDirectory ? await bytesBelow(at) : (await Deno.lstat(at)).size;
  }
  return bytes;
}

function kindOf(info: Deno.FileInfo): string {
  return info.isSymlink ? "link" : "file";
}
