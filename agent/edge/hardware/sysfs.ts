/**
 * Reads single attributes of sysfs below a root. Any of them may be missing, or open and then refuse
 * to be read (EINVAL): that is an answer, not an error, and nothing here throws for it.
 */

import { reasonOf } from "../reason_of.ts";

export type Attribute =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "missing" }
  /** The permission set or the file mode forbids it. */
  | { readonly kind: "denied"; readonly message: string }
  /** It exists and cannot be read: EINVAL of unused GID entries, of restricted functions, and so on. */
  | { readonly kind: "unreadable"; readonly message: string };

export type Listing =
  | { readonly kind: "names"; readonly names: readonly string[] }
  | Exclude<Attribute, { readonly kind: "text" }>;

/** Longest attribute kept; sysfs itself ends them at one page. */
const TEXT_LENGTH_MAX = 4096;

/** Most entries of one directory that are looked at; a large server has under 1,000 PCI functions. */
const NAME_COUNT_MAX = 4096;

/** Reads one attribute, trimmed. */
export async function readAttribute(path: string): Promise<Attribute> {
  try {
    const text = await Deno.readTextFile(path);
    return { kind: "text", text: text.slice(0, TEXT_LENGTH_MAX).trim() };
  } catch (error) {
    return absence(error);
  }
}

/** The text of an attribute, or undefined when it has none for whatever reason. */
export async function readText(path: string): Promise<string | undefined> {
  const attribute = await readAttribute(path);
  return attribute.kind === "text" ? attribute.text : undefined;
}

/** Names in a directory, sorted, so that the order never depends on the kernel. */
export async function listNames(path: string): Promise<Listing> {
  try {
    const names: string[] = [];
    for await (const entry of Deno.readDir(path)) {
      if (names.push(entry.name) >= NAME_COUNT_MAX) break;
    }
    return { kind: "names", names: names.sort(byNumber) };
  } catch (error) {
    return absence(error);
  }
}

/** Whether something is there, whatever it is. */
export async function isPresent(path: string): Promise<boolean> {
  try {
    await Deno.lstat(path);
    return true;
  } catch {
    return false;
  }
}

/** Where a path leads once every link is followed, or undefined. */
export async function resolvedPath(path: string): Promise<string | undefined> {
  try {
    return await Deno.realPath(path);
  } catch {
    return undefined;
  }
}

/** The last part of what a link points at (`driver` → `vfio-pci`), or undefined. */
export async function linkName(path: string): Promise<string | undefined> {
  try {
    return (await Deno.readLink(path)).split("/").at(-1);
  } catch {
    return undefined;
  }
}

/** `mlx5_2` before `mlx5_10`. */
function byNumber(a: string, b: string): number {
  return a.localeCompare(b, "en", { numeric: true });
}

function absence(error: unknown): Exclude<Attribute, { readonly kind: "text" }> {
  if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory) {
    return { kind: "missing" };
  }
  const denied = error instanceof Deno.errors.NotCapable ||
    error instanceof Deno.errors.PermissionDenied;
  return { kind: denied ? "denied" : "unreadable", message: reasonOf(error) };
}
