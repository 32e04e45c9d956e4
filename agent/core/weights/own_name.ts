/**
 * Names of what Heddle fetched. Everything that it fetches lies directly inside one folder, under a
 * name of this form, and nothing else is ever removed.
 */

/** Folder below a model directory that belongs to Heddle alone. */
export const OWN_FOLDER = "heddle";
/** In each folder: what it holds. Also the proof that it is whole. */
export const MANIFEST_FILE = ".heddle-weights.json";
/** In each folder that is not whole yet: held by whoever fetches into it. */
export const LOCK_FILE = ".lock";

/** In each folder that is not whole yet: the files that are not whole yet. */
export const ASIDE_FOLDER = ".heddle-aside";

const SLUG_LENGTH_MAX = 80;
const VERSION_LENGTH = 12;
const NAME = /^[a-z0-9][a-z0-9._-]*-[0-9a-f]{14}$/;
const FOLDER = /^[a-z0-9][a-z0-9._-]*-[0-9a-f]{14}@[A-Za-z0-9]{1,12}$/;
const PARTIAL = ".partial-";

/** What is fetched: the source as the catalog says it, and the patterns for its files. */
export interface Want {
  readonly source: string;
  readonly include: readonly string[];
  readonly exclude: readonly string[];
}

/** Name that all versions of the same want have in common. */
export function ownName({ source, include, exclude }: Want): string {
  const slug = source.toLowerCase().replace(/^\w+:\/\//, "").replace(/[^a-z0-9._]+/g, "-")
    .replace(/^[-._]+/, "").slice(-SLUG_LENGTH_MAX).replace(/^[-._]+|[-._]+$/g, "");
  return `${slug || "weights"}-${digest(JSON.stringify([source, include, exclude]))}`;
}

/** Name of the folder of one version. */
export function folderName(want: Want, version: string): string {
  return `${ownName(want)}@${version.replace(/[^A-Za-z0-9]/g, "").slice(0, VERSION_LENGTH)}`;
}

/** True for the path of a file that would lie where something of Heddle's own does, or below it. */
export function isOwnPath(path: string): boolean {
  return /^\.(?:lock|heddle-[^/]*)(?:\/|$)/.test(path);
}

/** Where a version is put together before it counts. */
export function partialName(folder: string): string {
  return `${PARTIAL}${folder}`;
}

/** True for what `folderName` makes. */
export function isFolderName(name: string): boolean {
  return FOLDER.test(name) && !name.includes("..");
}

/** The name that its versions share, of a folder that is not whole yet; undefined for anything else. */
export function wantOfPartial(name: string): string | undefined {
  if (!name.startsWith(PARTIAL)) return undefined;
  const folder = name.slice(PARTIAL.length);
  return isFolderName(folder) ? nameOf(folder) : undefined;
}

/** The name that all versions share. */
export function nameOf(folder: string): string | undefined {
  const name = folder.split("@")[0] ?? "";
  return NAME.test(name) ? name : undefined;
}

// 53 bits that tell two wants apart; the manifest says which it is.
function digest(text: string): string {
  let a = 0xdeadbeef;
  let b = 0x41c6ce57;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    a = Math.imul(a ^ code, 2654435761);
    b = Math.imul(b ^ code, 1597334677);
  }
  a = Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909);
  b = Math.imul(b ^ (b >>> 16), 2246822507) ^ Math.imul(a ^ (a >>> 13), 3266489909);
  const value = 4294967296 * (2097151 & b) + (a >>> 0);
  return value.toString(16).padStart(14, "0");
}
