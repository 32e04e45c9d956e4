/** Reads the heads of a tar archive's entries, and says which may be unpacked. */

export const BLOCK = 512;

export interface TarHead {
  readonly path: string;
  readonly size: number;
  readonly mode: number;
  readonly type:
    | "file"
    | "folder"
    | "symlink"
    | "hardlink"
    | "long_name"
    | "long_link"
    | "pax"
    | "other";
  readonly link: string;
}

/** Undefined at the archive's end, which is a block of zeros. Throws when it is no head. */
export function readTarHead(block: Uint8Array): TarHead | undefined {
  if (block.every((byte) => byte === 0)) return undefined;
  if (checksum(block) !== octal(block, 148, 8)) throw new Error("its heads are spoilt");
  const prefix = /^ustar/.test(text(block, 257, 6)) ? text(block, 345, 155) : "";
  const name = text(block, 0, 100);
  return {
    path: prefix === "" ? name : `${prefix}/${name}`,
    size: octal(block, 124, 12),
    mode: octal(block, 100, 8),
    type: TYPES[String.fromCharCode(block[156] ?? 0)] ?? "other",
    link: text(block, 157, 100),
  };
}

const TYPES: Readonly<Record<string, TarHead["type"]>> = {
  "0": "file",
  "\0": "file",
  "1": "hardlink",
  "2": "symlink",
  "5": "folder",
  L: "long_name",
  K: "long_link",
  x: "pax",
  g: "pax",
};

/** What a pax record says of the entry after it. */
export function readPax(bytes: Uint8Array): { path?: string; link?: string } {
  const said: { path?: string; link?: string } = {};
  const whole = new TextDecoder().decode(bytes);
  for (const [, key, value] of whole.matchAll(/^\d+ (path|linkpath)=(.*)$/gm)) {
    if (key === "path" && value !== undefined) said.path = value;
    if (key === "linkpath" && value !== undefined) said.link = value;
  }
  return said;
}

/** Where an entry goes below the folder, or why it must not be unpacked. */
export type Place =
  | { readonly kind: "place"; readonly path: string }
  | { readonly kind: "itself" }
  | { readonly kind: "refused"; readonly why: string };

/** Pure. An entry that leads out is not repaired: an archive that tries is not one to use. */
export function placeOf({ path, type, link }: TarHead): Place {
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  if (path.startsWith("/")) return refused(`"${path}" is an absolute path`);
  if (parts.includes("..")) return refused(`"${path}" leads out of the folder`);
  // deno-lint-ignore no-control-regex
  if (/[\u0000-\u001f\\]/.test(path)) return refused(`"${path}" is no plain path`);
  if (type === "other") return refused(`"${path}" is a device or another special file`);
  if (parts.length === 0) return { kind: "itself" };
  if (type === "symlink" && leadsOut(parts.slice(0, -1), link)) {
    return refused(`"${path}" is a link to "${link}", out of the folder`);
  }
  // A hard link names an entry of the archive, from its top.
  if (type === "hardlink" && leadsOut([], link)) {
    return refused(`"${path}" is a link to "${link}", out of the folder`);
  }
  return { kind: "place", path: parts.join("/") };
}

function leadsOut(from: readonly string[], link: string): boolean {
  if (link === "" || link.startsWith("/")) return true;
  const at = [...from];
  for (const part of link.split("/")) {
    if (part === "" || part === ".") continue;
    if (part !== "..") at.push(part);
    else if (at.pop() === undefined) return true;
  }
  return false;
}

function refused(why: string): Place {
  return { kind: "refused", why };
}

function text(block: Uint8Array, at: number, length: number): string {
  const bytes = block.subarray(at, at + length);
  const end = bytes.indexOf(0);
  return new TextDecoder().decode(end < 0 ? bytes : bytes.subarray(0, end));
}

function octal(block: Uint8Array, at: number, length: number): number {
  const first = block[at] ?? 0;
  // Sizes beyond 8 GiB are written as bytes.
  if ((first & 0x80) !== 0) {
    let value = 0;
    for (let index = at + 1; index < at + length; index++) {
      value = value * 256 + (block[index] ?? 0);
    }
    return value;
  }
  return parseInt(text(block, at, length).trim() || "0", 8);
}

function checksum(block: Uint8Array): number {
  let sum = 0;
  for (let index = 0; index < BLOCK; index++) {
    // Its own field counts as blanks.
    sum += index >= 148 && index < 156 ? 32 : block[index] ?? 0;
  }
  return sum;
}
