/**
 * A captured sysfs as text: one line for everything that was read, path and content parted by a tab.
 *
 * - `a/b<TAB>4: ACTIVE`: an attribute and what it said (newlines as spaces).
 * - `a/b<TAB>!EINVAL`: it opens, and reading it fails. `!EACCES`: it may not be read.
 * - `a/b<TAB>-> ../c`: a link.
 * - `a/b/<TAB>`: a directory, so that an empty one is not lost.
 * - What is not listed is not there. Lines that begin with `#` are remarks.
 */

export type CapturedEntry =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "unreadable" }
  | { readonly kind: "denied" }
  | { readonly kind: "link"; readonly target: string }
  | { readonly kind: "directory" };

/** Entries by path, without slashes at either end. */
export type SysfsCapture = ReadonlyMap<string, CapturedEntry>;

/** Longest capture read, in lines: a large server gives some 20,000. */
const LINE_COUNT_MAX = 200_000;

/** Reads a capture; `prefix` goes before every path. Lines that are none are passed over. */
export function parseSysfsCapture(text: string, prefix = ""): SysfsCapture {
  const entries = new Map<string, CapturedEntry>();
  for (const line of text.split(/\r?\n/).slice(0, LINE_COUNT_MAX)) {
    const tab = line.indexOf("\t");
    if (tab <= 0 || line.startsWith("#")) continue;
    const path = line.slice(0, tab);
    const content = line.slice(tab + 1).trim();
    const key = `${prefix}${path}`.replace(/^\/+|\/+$/g, "");
    entries.set(key, path.endsWith("/") ? { kind: "directory" } : parseContent(content));
  }
  return entries;
}

function parseContent(content: string): CapturedEntry {
  if (content === "!EINVAL") return { kind: "unreadable" };
  if (content === "!EACCES") return { kind: "denied" };
  if (content.startsWith("-> ")) return { kind: "link", target: content.slice(3) };
  return { kind: "text", text: content };
}

/** Writes a capture, sorted by path. The reverse of parseSysfsCapture(). */
export function formatSysfsCapture(capture: SysfsCapture): string {
  return [...capture].sort(([a], [b]) => a < b ? -1 : 1)
    .map(([path, entry]) => `${path}${formatEntry(entry)}\n`).join("");
}

function formatEntry(entry: CapturedEntry): string {
  switch (entry.kind) {
    case "text":
      return `\t${entry.text.replace(/\s+/g, " ")}`;
    case "unreadable":
      return "\t!EINVAL";
    case "denied":
      return "\t!EACCES";
    case "link":
      return `\t-> ${entry.target}`;
    case "directory":
      return "/\t";
    default:
      return entry satisfies never;
  }
}

/** Names directly below `path`, or undefined when nothing is there. */
export function namesBelow(capture: SysfsCapture, path: string): readonly string[] | undefined {
  const names = new Set<string>();
  let present = false;
  for (const [key] of capture) {
    present ||= key === path;
    if (!key.startsWith(`${path}/`)) continue;
    present = true;
    names.add(key.slice(path.length + 1).split("/")[0] ?? "");
  }
  return present ? [...names] : undefined;
}
