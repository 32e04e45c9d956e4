/** Fetches one source into Heddle's own folder: whole, checked, under a name of its own, or not. */
import { join } from "node:path";
import { writeFileAtomic } from "@heddle/common/atomic_file";
import { delay } from "@heddle/common/task";
import { errorText } from "@heddle/proto/error";
import { encodeManifest, type FetchRequest, type ReportOf } from "../../core/weights/documents.ts";
import { WeightsError } from "../../core/weights/failure.ts";
import {
  folderName,
  LOCK_FILE,
  MANIFEST_FILE,
  ownName,
  partialName,
  wantOfPartial,
} from "../../core/weights/own_name.ts";
import { closeAside } from "./transfer/aside.ts";
import { download } from "./transfer/download.ts";
import { listSource } from "./remote/list_source.ts";
import { openHttp } from "./net/open_http.ts";
import { findOwn } from "./own_weights.ts";
import type { Progress } from "./progress.ts";

const FOLDER_MODE = 0o750;
const FILE_MODE = 0o640;
/** Between looks whether another program is done that fetches the same. */
const LOCK_POLL_MS = 1_000;

/** Resolves with what is there then. Throws WeightsError, or the signal's reason. */
export async function fetchWeights(
  request: FetchRequest,
  progress: Progress,
  signal: AbortSignal,
): Promise<ReportOf<"done">> {
  const { into, version } = request;
  const had = await findOwn(into, request, version);
  if (had !== undefined) return doneWith(had, 0);
  using http = await openHttp(request);
  progress.start();
  const { listing, selection } = await listSource(request, { http, progress, signal });
  const folder = folderName(request, listing.version);
  const partial = join(into, partialName(folder));
  await makeFolder(partial);
  using _lock = await lock(join(partial, LOCK_FILE), progress, signal);
  // Whoever held it may have finished it.
  const meanwhile = await findOwn(into, request, listing.version);
  if (meanwhile !== undefined) return doneWith(meanwhile, 0);
  const bytes = selection.files.reduce((sum, { size }) => sum + (size ?? 0), 0);
  progress.begins({ version: listing.version, files: selection.files.length, bytes });
  const fetched = await download(selection.files, {
    request,
    folder: partial,
    http,
    progress,
    signal,
  });
  const total = fetched.reduce((sum, { size }) => sum + size, 0);
  const { source, include, exclude } = request;
  const manifest = {
    source,
    include,
    exclude,
    version: listing.version,
    entry: selection.entry,
    total_bytes: total,
    files: [...fetched],
  };
  await writeFileAtomic(join(partial, MANIFEST_FILE), encodeManifest(manifest), {
    mode: FILE_MODE,
  });
  await closeAside(partial);
  await Deno.remove(join(partial, LOCK_FILE)).catch(() => {});
  await Deno.rename(partial, join(into, folder));
  await removeOthers(request, folder);
  return doneWith({ folder, manifest }, progress.receivedBytes);
}

function doneWith(
  { folder, manifest }: {
    readonly folder: string;
    readonly manifest: { readonly entry: string; readonly version: string; total_bytes: number };
  },
  receivedBytes: number,
): ReportOf<"done"> {
  return {
    kind: "done",
    folder,
    entry: manifest.entry,
    version: manifest.version,
    total_bytes: manifest.total_bytes,
    received_bytes: receivedBytes,
  };
}

async function makeFolder(path: string): Promise<void> {
  try {
    // The group goes from the folder above to what is made in it, where that folder is setgid.
    await Deno.mkdir(path, { recursive: true, mode: FOLDER_MODE });
  } catch (error) {
    throw new WeightsError("system_error", `Cannot make ${path}: ${errorText(error)}`, {
      cause: error,
    });
  }
}

/**
 * Only one program fetches the same, on this node or on another one that shares the folder. The
 * system gives the lock up when its holder dies, however it dies.
 */
async function lock(path: string, progress: Progress, signal: AbortSignal): Promise<Disposable> {
  for (;;) {
    const file = await Deno.open(path, { write: true, create: true, mode: FILE_MODE });
    if (await file.tryLock(true)) {
      // It may be the lock of a folder that was renamed meanwhile, which holds nobody off.
      if (await isAt(file, path)) return file;
      file.close();
      await Deno.mkdir(path.slice(0, path.lastIndexOf("/")), {
        recursive: true,
        mode: FOLDER_MODE,
      });
      continue;
    }
    file.close();
    progress.phase("waiting", "another program fetches the same into this folder");
    await delay(LOCK_POLL_MS, signal);
    signal.throwIfAborted();
    await makeFolder(path.slice(0, path.lastIndexOf("/")));
  }
}

async function isAt(file: Deno.FsFile, path: string): Promise<boolean> {
  try {
    const [own, there] = await Promise.all([file.stat(), Deno.stat(path)]);
    return own.ino === there.ino;
  } catch {
    return false;
  }
}

/** What an earlier version left half done will not be finished any more. */
async function removeOthers(request: FetchRequest, folder: string): Promise<void> {
  const name = ownName(request);
  for await (const each of Deno.readDir(request.into)) {
    if (wantOfPartial(each.name) !== name || each.name === partialName(folder)) continue;
    const path = join(request.into, each.name);
    const held = await Deno.open(join(path, LOCK_FILE), {
      write: true,
      create: true,
      mode: FILE_MODE,
    });
    try {
      if (await held.tryLock(true)) await Deno.remove(path, { recursive: true });
    } finally {
      held.close();
    }
  }
}
