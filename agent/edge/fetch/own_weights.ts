/** What lies whole in Heddle's own folder. */
import { join } from "node:path";
import { readTextIfExists } from "@heddle/common/atomic_file";
import { decodeManifest, type Manifest } from "../../core/weights/documents.ts";
import {
  isFolderName,
  MANIFEST_FILE,
  nameOf,
  ownName,
  type Want,
} from "../../core/weights/own_name.ts";

export interface OwnWeights {
  /** Name of its folder, directly inside Heddle's own. */
  readonly folder: string;
  readonly manifest: Manifest;
}

interface Dated extends OwnWeights {
  /** When it was whole, by the clock of its file system. */
  readonly wholeAt: number;
}

/**
 * Everything that is whole in `into`, in the order in which it was fetched. Never throws: what cannot
 * be read is not there.
 */
export async function listOwn(into: string): Promise<readonly OwnWeights[]> {
  const found: Dated[] = [];
  for (const folder of await namesIn(into)) {
    const manifest = await manifestOf(into, folder);
    if (manifest === undefined) continue;
    found.push({ folder, manifest, wholeAt: await changedAt(join(into, folder, MANIFEST_FILE)) });
  }
  return found.sort((a, b) => a.wholeAt - b.wholeAt || (a.folder < b.folder ? -1 : 1))
    .map(({ folder, manifest }) => ({ folder, manifest }));
}

async function changedAt(path: string): Promise<number> {
  const info = await Deno.lstat(path).catch(() => undefined);
  return info?.mtime?.getTime() ?? 0;
}

/** What is there of a want, in that version; with none said, in any. */
export async function findOwn(
  into: string,
  want: Want,
  version: string,
): Promise<OwnWeights | undefined> {
  const name = ownName(want);
  for (const folder of (await namesIn(into)).toSorted().reverse()) {
    if (nameOf(folder) !== name) continue;
    const manifest = await manifestOf(into, folder);
    if (manifest === undefined || manifest.source !== want.source) continue;
    if (version === "" || manifest.version === version) return { folder, manifest };
  }
  return undefined;
}

async function namesIn(into: string): Promise<readonly string[]> {
  const names: string[] = [];
  try {
    for await (const { name, isDirectory } of Deno.readDir(into)) {
      if (isDirectory && isFolderName(name)) names.push(name);
    }
  } catch {
    // Not there yet, or not to be read: then nothing is known to be there.
  }
  return names;
}

async function manifestOf(into: string, folder: string): Promise<Manifest | undefined> {
  try {
    const text = await readTextIfExists(join(into, folder, MANIFEST_FILE));
    return text === undefined ? undefined : decodeManifest(text);
  } catch {
    return undefined;
  }
}
