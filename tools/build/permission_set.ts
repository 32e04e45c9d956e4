/**
 * The permission sets of deno.json, as command-line flags. A bundle has no deno.json around it, so
 * what `-P=control` means in the repository is written out where control is packaged.
 */
import { z } from "zod";
import { formatComplaints, parseConfig } from "@heddle/common/config_file";
import { HeddleError } from "@heddle/proto/error";

/** Kinds of permission, in the order of their flags. No set may grant `all`. */
export const KINDS = ["read", "write", "net", "env", "sys", "run", "ffi", "import"] as const;
export type Kind = (typeof KINDS)[number];

/** What can be said about a kind: Deno has a flag for each, `--allow-read` and so on. */
export const VERBS = ["allow", "deny", "ignore"] as const;
export type Verb = (typeof VERBS)[number];

/** Whatever there is of a kind, or the listed ones. */
export type Extent = "all" | readonly string[];

/** What one program may do. What is not mentioned is not granted. */
export type PermissionSet = Readonly<
  Partial<Record<Kind, Readonly<Partial<Record<Verb, Extent>>>>>
>;

/** What deno.json grants. */
export interface Grants {
  readonly set: PermissionSet;
  /** Names of Deno's unstable features that are switched on. */
  readonly unstable: readonly string[];
}

// Deno's flags separate values by commas and know no way to write one.
const value = z.string().regex(/^[^,]+$/, "must be without commas: flags cannot hold them");
const extent = z.union([z.boolean(), z.array(value).nonempty()])
  .transform((given): Extent | undefined => given === true ? "all" : given || undefined);
const verbs = z.union([
  extent.transform((allow) => ({ allow })),
  z.strictObject({ allow: extent, deny: extent, ignore: extent }).partial(),
]).transform((given) => without(given));
const kinds = z.strictObject({
  read: verbs,
  write: verbs,
  net: verbs,
  env: verbs,
  sys: verbs,
  run: verbs,
  ffi: verbs,
  import: verbs,
}).partial().transform((given): PermissionSet => without(given));
const configSchema = z.object({
  unstable: z.array(z.string().regex(/^[a-z-]+$/)).default([]),
  permissions: z.record(z.string(), kinds),
});

/** The same record, without what is undefined. */
function without<T extends Record<string, unknown>>(
  given: T,
): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const kept: { [K in keyof T]?: Exclude<T[K], undefined> } = {};
  for (const name in given) {
    const one = given[name];
    if (one !== undefined) kept[name] = one as Exclude<T[typeof name], undefined>; // Just checked.
  }
  return kept;
}

/** Reads the set called `name` out of the text of deno.json. Throws `invalid_input`, `not_found`. */
export function readGrants(text: string, name: string): Grants {
  const result = parseConfig(configSchema, text, "deno.json");
  if (result.kind !== "ok") {
    throw new HeddleError("invalid_input", formatComplaints(result.complaints));
  }
  const set = result.value.permissions[name];
  if (set === undefined) {
    throw new HeddleError("not_found", `Cannot package ${name}: deno.json has no such permissions`);
  }
  return { set, unstable: result.value.unstable };
}

/** Where a set's paths lead. */
export interface Places {
  /** Takes the place of the repository's root in paths that begin with `./`. */
  readonly root: string;
  /** The one folder to read and to write instead of what the set says, as HEDDLE_STATE makes it. */
  readonly state?: string;
}

/** The set with its paths made absolute. Pure. */
export function settle(set: PermissionSet, { root, state }: Places): PermissionSet {
  const settled: { -readonly [K in Kind]?: Partial<Record<Verb, Extent>> } = {};
  for (const kind of KINDS) {
    const given = set[kind];
    if (given === undefined) continue;
    if (state !== undefined && (kind === "read" || kind === "write")) {
      settled[kind] = { allow: [state] };
      continue;
    }
    const verbs: Partial<Record<Verb, Extent>> = {};
    for (const verb of VERBS) {
      const some = given[verb];
      if (some === undefined) continue;
      // A function, because "$" means something in a replacement text.
      verbs[verb] = some === "all" ? some : some.map((one) => one.replace(/^\.(?=\/)/, () => root));
    }
    settled[kind] = verbs;
  }
  return settled;
}

/**
 * The flags that grant exactly what the set grants, in a fixed order. Importing from other hosts,
 * which Deno allows when nothing is said, is denied.
 */
export function flagsOf({ set, unstable }: Grants): readonly string[] {
  const flags = unstable.map((feature) => `--unstable-${feature}`);
  for (const kind of KINDS) {
    for (const verb of VERBS) {
      const some = set[kind]?.[verb];
      if (some === "all") flags.push(`--${verb}-${kind}`);
      else if (some !== undefined) flags.push(`--${verb}-${kind}=${some.join(",")}`);
    }
  }
  if (set.import === undefined) flags.push("--deny-import");
  return flags;
}
