/** What an import's specifier points at, without touching the disk. */

/** The meaning of one specifier, seen from the file that holds it. */
export type Target =
  /** A file of this repository, by its path from the root. */
  | { readonly kind: "file"; readonly path: string }
  /** A relative path that climbs out of the repository. */
  | { readonly kind: "outside" }
  /** `@heddle/<member>/<path>`. */
  | { readonly kind: "member"; readonly member: string; readonly path: string }
  /** `node:<name>`. */
  | { readonly kind: "node"; readonly name: string }
  /** A package by its bare name. */
  | { readonly kind: "package"; readonly name: string }
  /** `npm:`, `jsr:`, `https:`, `file:` … written out in the code. */
  | { readonly kind: "url"; readonly scheme: string };

/** Decodes `specifier` as written in the file at `from` (a path from the repository's root). */
export function targetOf(specifier: string, from: string): Target {
  if (/^\.{1,2}(?:\/|$)/.test(specifier)) return relative(specifier, from);
  if (specifier.startsWith("/")) return { kind: "outside" };
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(specifier)?.[1];
  if (scheme === "node") return { kind: "node", name: specifier.slice("node:".length) };
  if (scheme !== undefined) return { kind: "url", scheme };
  const parts = specifier.split("/");
  if (parts[0] === "@heddle") {
    return { kind: "member", member: parts[1] ?? "", path: parts.slice(2).join("/") };
  }
  const name = specifier.startsWith("@") ? parts.slice(0, 2).join("/") : parts[0] ?? "";
  return { kind: "package", name };
}

function relative(specifier: string, from: string): Target {
  const parts = from.split("/").slice(0, -1);
  for (const part of specifier.split("/")) {
    if (part === "." || part === "") continue;
    if (part !== "..") parts.push(part);
    else if (parts.pop() === undefined) return { kind: "outside" };
  }
  return { kind: "file", path: parts.join("/") };
}
