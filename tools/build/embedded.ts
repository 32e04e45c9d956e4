/**
 * Reads back what a compiled executable will grant to its program. `deno compile` appends its
 * settings as JSON; nothing else says what was really baked in.
 */
import { Buffer } from "node:buffer";
import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { HeddleError } from "@heddle/proto/error";
import { KINDS, type PermissionSet, VERBS } from "./permission_set.ts";

/** Before the settings: this mark and their length, eight bytes with the lowest first. */
const MARK = "d3n0l4nd";
const LENGTH_BYTES = 8;
/** Settings hold the import map and little else; far more is not ours. */
const SETTINGS_BYTES_MAX = 16 * 1024 * 1024;

const list = z.array(z.string()).nullable();
const settingsSchema = z.object({
  permissions: z.record(z.string(), z.union([list, z.boolean()])),
});

/** What is granted, by Deno's own words for it: `allow_read`, `deny_net`, `prompt`. */
export type Embedded = Readonly<Record<string, readonly string[] | boolean | null>>;

/** The permissions in an executable's bytes. Pure. Throws `system` when there are none. */
export function readEmbedded(executable: Uint8Array): Embedded {
  const bytes = Buffer.from(executable.buffer, executable.byteOffset, executable.byteLength);
  // The runtime itself holds the mark too, so what follows must make sense.
  for (let at = bytes.lastIndexOf(MARK); at >= 0; at = bytes.lastIndexOf(MARK, at - 1)) {
    const begin = at + MARK.length + LENGTH_BYTES;
    if (begin <= bytes.length) {
      const length = Number(bytes.readBigUInt64LE(at + MARK.length));
      if (length <= SETTINGS_BYTES_MAX && begin + length <= bytes.length) {
        const settings = parseSettings(bytes.toString("utf8", begin, begin + length));
        if (settings !== undefined) return settings;
      }
    }
    if (at === 0) break;
  }
  throw new HeddleError("system", "Cannot read the permissions of an executable: it holds none");
}

function parseSettings(text: string): Embedded | undefined {
  try {
    return settingsSchema.safeParse(JSON.parse(text)).data?.permissions;
  } catch {
    return undefined;
  }
}

/** Where an executable grants something else than the set, a line each. Pure. */
export function differences(embedded: Embedded, set: PermissionSet): readonly string[] {
  const wanted = new Map<string, readonly string[] | boolean | null>([["prompt", false]]);
  for (const kind of KINDS) {
    for (const verb of VERBS) {
      const extent = set[kind]?.[verb];
      wanted.set(`${verb}_${kind}`, extent === "all" ? [] : extent ?? null);
    }
  }
  if (set.import === undefined) {
    // Deno fills in hosts that may be imported from; denying all of them comes first.
    wanted.set("deny_import", []);
    wanted.set("allow_import", embedded["allow_import"] ?? null);
  }
  const names = new Set([...wanted.keys(), ...Object.keys(embedded)]);
  return [...names].filter((name) =>
    !isDeepStrictEqual(embedded[name] ?? null, wanted.get(name) ?? null)
  ).map((name) =>
    `${name} is ${JSON.stringify(embedded[name] ?? null)}, and the set says ` +
    JSON.stringify(wanted.get(name) ?? null)
  );
}
