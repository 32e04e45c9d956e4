/** Looks through directories for weights, and asks how much room is left in them. */

import { statfs } from "node:fs/promises";
import { type FoundFile, type FoundFolder, isModelFolder } from "../../core/host/model_files.ts";
import { shellWord } from "../../core/host/shell_word.ts";
import type { NodeProblem } from "../../core/problem.ts";
import { reasonOf } from "../reason_of.ts";

export interface DirectoryRoom {
  /** Undefined when the file system does not say. */
  readonly freeBytes: number | undefined;
  /** The file system is one that other machines may use too. */
  readonly shared: boolean;
  readonly problems: readonly NodeProblem[];
}

export interface DirectoryScan {
  readonly folders: readonly FoundFolder[];
  readonly problems: readonly NodeProblem[];
}

/** A hub cache nests four deep (`hub/models--…/snapshots/<revision>`); two more for people's own. */
const DEPTH_MAX = 6;
/** Bounds of one scan: a directory that holds more is not a directory of models. */
const FOLDER_COUNT_MAX = 2_000;
const ENTRY_COUNT_MAX = 20_000;

/** Magic numbers of `statfs`: network and cluster file systems, and FUSE, which fronts many. */
const SHARED_TYPES: ReadonlySet<number> = new Set([
  0x6969, // NFS
  0x0bd00bd0, // Lustre
  0xff534d42, // CIFS
  0xfe534d42, // SMB2
  0x00c36400, // Ceph
  0x47504653, // GPFS
  0x19830326, // BeeGFS
  0x65735546, // FUSE
  0x01021997, // 9p
  0x01161970, // GFS2
  0x7461636f, // OCFS2
  0xaad7aaea, // PanFS
  0x5346414f, // AFS
]);

/** Room in one directory. Never throws. */
export async function readRoom(path: string): Promise<DirectoryRoom> {
  try {
    const stat = await statfs(path);
    return {
      freeBytes: Number.isFinite(stat.bavail * stat.bsize) ? stat.bavail * stat.bsize : undefined,
      shared: SHARED_TYPES.has(stat.type >>> 0),
      problems: [],
    };
  } catch (error) {
    return { freeBytes: undefined, shared: false, problems: [directoryProblem(path, error)] };
  }
}

/** Everything below one directory, within bounds. Never throws; stops when `signal` aborts. */
export async function scanDirectory(path: string, signal: AbortSignal): Promise<DirectoryScan> {
  const folders: FoundFolder[] = [];
  const problems: NodeProblem[] = [];
  const seen = new Set<string>();
  const queue = [{ path, depth: 0, insideModel: false }];
  let entryCount = 0;
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    if (signal.aborted) break;
    if (folders.length >= FOLDER_COUNT_MAX || entryCount >= ENTRY_COUNT_MAX) {
      problems.push(truncated(path, next.path));
      break;
    }
    const read = await readFolder(next.path, ENTRY_COUNT_MAX - entryCount, seen);
    if (read.error !== undefined) {
      // Below the top a folder may be someone's own; only the top is worth a word.
      if (next.depth === 0) problems.push(directoryProblem(path, read.error));
      continue;
    }
    entryCount += read.entryCount;
    const { insideModel, depth } = next;
    folders.push({ path: next.path, files: read.files, insideModel });
    if (depth >= DEPTH_MAX) continue;
    const below = insideModel || isModelFolder(read.files);
    for (const folder of read.folders) {
      queue.push({ path: folder, depth: depth + 1, insideModel: below });
    }
  }
  return { folders, problems };
}

interface FolderRead {
  readonly files: readonly FoundFile[];
  readonly folders: readonly string[];
  readonly entryCount: number;
  readonly error?: unknown;
}

async function readFolder(
  path: string,
  entryCountMax: number,
  seen: Set<string>,
): Promise<FolderRead> {
  const files: FoundFile[] = [];
  const folders: string[] = [];
  let entryCount = 0;
  try {
    for await (const entry of Deno.readDir(path)) {
      entryCount += 1;
      if (entryCount > entryCountMax) break;
      if (entry.name.startsWith(".")) continue;
      const at = `${path}/${entry.name}`;
      const stat = await statOrNothing(at); // follows links, as a hub cache is made of them
      if (stat?.isFile === true) files.push({ path: at, sizeBytes: stat.size });
      if (stat?.isDirectory !== true) continue;
      const identity = `${stat.dev}:${stat.ino}`;
      if (!seen.has(identity)) folders.push(at);
      seen.add(identity);
    }
    return { files, folders: folders.sort(), entryCount };
  } catch (error) {
    return { files, folders, entryCount, error };
  }
}

/** A link to nowhere, or to where the agent may not read, is no file. */
async function statOrNothing(path: string): Promise<Deno.FileInfo | undefined> {
  try {
    return await Deno.stat(path);
  } catch {
    return undefined;
  }
}

function truncated(path: string, at: string): NodeProblem {
  return {
    reason: "model_dir_truncated",
    detail: `${path} holds more than ${FOLDER_COUNT_MAX} folders or ${ENTRY_COUNT_MAX} entries; ` +
      `what comes after ${at} was not looked at.`,
    remedy: "Point model_dirs at the folders that hold models.",
  };
}

function directoryProblem(path: string, error: unknown): NodeProblem {
  const message = reasonOf(error);
  if (error instanceof Deno.errors.NotFound || /ENOENT/.test(message)) {
    return {
      reason: "model_dir_missing",
      detail: `The model directory ${path} does not exist.`,
      // The agent may only read weights, so it cannot make the folder itself.
      remedy: `Make it: sudo mkdir -p ${shellWord(path)}, readable to the agent and its engines; ` +
        "or take it out of model_dirs. docs/weights.md says who must own heddle/ in the first of them.",
    };
  }
  return {
    reason: "model_dir_unreadable",
    detail: `The model directory ${path} cannot be read: ${message}`,
    remedy: "Check its owner and mode; outside the agent's usual folders, name it in HEDDLE_READ.",
  };
}
