/**
 * Sysfs below a root, one attribute at a time. Any of them may be missing, or open and then refuse
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

/** A sysfs: the kernel's, or one that was captured. Paths are relative to its root. Never rejects. */
export interface Sysfs {
  /** For messages. */
  readonly root: string;
  /** One attribute, trimmed. */
  attribute(path: string): Promise<Attribute>;
  /** Names in a directory, sorted with numbers by value, so that their order is always the same. */
  list(path: string): Promise<Listing>;
  /** Whether something is there, whatever it is. */
  isPresent(path: string): Promise<boolean>;
  /** Where a link leads: whole for the kernel's, as recorded for a captured one. */
  target(path: string): Promise<string | undefined>;
  /** Whether the beginning of a binary attribute holds `word`. */
  holds(path: string, word: string): Promise<boolean>;
}

/** Longest attribute kept; sysfs itself ends them at one page. */
const TEXT_LENGTH_MAX = 4096;

/** Most entries of one directory that are looked at; a large server has under 1,000 PCI functions. */
const NAME_COUNT_MAX = 4096;

/** Vital product data, the only binary read, has its model line in its first few hundred bytes. */
const BINARY_BYTES_MAX = 4096;

/** The text of an attribute, or undefined when it has none for whatever reason. */
export async function textAt(sysfs: Sysfs, path: string): Promise<string | undefined> {
  const attribute = await sysfs.attribute(path);
  return attribute.kind === "text" ? attribute.text : undefined;
}

/** `mlx5_2` before `mlx5_10`. */
export function byNumber(a: string, b: string): number {
  return a.localeCompare(b, "en", { numeric: true });
}

/** The sysfs that is mounted at `root`. */
export class MountedSysfs implements Sysfs {
  readonly root: string;

  constructor(root: string) {
    this.root = root;
  }

  async attribute(path: string): Promise<Attribute> {
    try {
      const text = await Deno.readTextFile(`${this.root}/${path}`);
      return { kind: "text", text: text.slice(0, TEXT_LENGTH_MAX).trim() };
    } catch (error) {
      return absence(error);
    }
  }

  async list(path: string): Promise<Listing> {
    try {
      const names: string[] = [];
      for await (const entry of Deno.readDir(`${this.root}/${path}`)) {
        if (names.push(entry.name) >= NAME_COUNT_MAX) break;
      }
      return { kind: "names", names: names.sort(byNumber) };
    } catch (error) {
      return absence(error);
    }
  }

  async isPresent(path: string): Promise<boolean> {
    try {
      await Deno.lstat(`${this.root}/${path}`);
      return true;
    } catch {
      return false;
    }
  }

  async target(path: string): Promise<string | undefined> {
    try {
      return await Deno.readLink(`${this.root}/${path}`);
    } catch {
      return undefined;
    }
  }

  async holds(path: string, word: string): Promise<boolean> {
    try {
      using file = await Deno.open(`${this.root}/${path}`);
      const buffer = new Uint8Array(BINARY_BYTES_MAX);
      const count = await file.read(buffer);
      return new TextDecoder("latin1").decode(buffer.subarray(0, count ?? 0)).includes(word);
    } catch {
      return false; // absent, or not readable for this user
    }
  }
}

function absence(error: unknown): Exclude<Attribute, { readonly kind: "text" }> {
  if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory) {
    return { kind: "missing" };
  }
  const denied = error instanceof Deno.errors.NotCapable ||
    error instanceof Deno.errors.PermissionDenied;
  return { kind: denied ? "denied" : "unreadable", message: reasonOf(error) };
}
