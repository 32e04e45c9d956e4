import { deepEqual, equal, match, throws } from "node:assert/strict";
import { Buffer } from "node:buffer";
import fc from "fast-check";
import { differences, readEmbedded } from "./embedded.ts";
import type { PermissionSet } from "./permission_set.ts";

const MARK = Buffer.from("d3n0l4nd");

function length(count: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(count));
  return bytes;
}

function executable(
  settings: unknown,
  around: { before: Uint8Array; after: Uint8Array },
): Uint8Array {
  const text = Buffer.from(JSON.stringify(settings));
  return Buffer.concat([around.before, MARK, length(text.length), text, around.after]);
}

const PERMISSIONS = { allow_read: ["/ä"], deny_read: null, prompt: false };

Deno.test("readEmbedded() finds the settings among bytes that look alike", () => {
  // The mark as the runtime holds it: at the very end, before nonsense, and before other JSON.
  const alike = fc.oneof(
    fc.uint8Array({ maxLength: 40 }),
    fc.constant(Buffer.concat([MARK, length(3), Buffer.from("{}")])),
    fc.constant(Buffer.concat([MARK, length(2), Buffer.from("{}")])),
    fc.constant(Buffer.concat([MARK, Buffer.from("\xff\xff\xff\xff\xff\xff\xff\xff", "latin1")])),
    fc.constant(MARK),
  );
  const around = fc.array(alike, { maxLength: 4 }).map((parts) => Buffer.concat(parts));
  fc.assert(fc.property(around, around, (before, after) => {
    const bytes = executable({ argv: [], permissions: PERMISSIONS }, { before, after });
    deepEqual(readEmbedded(bytes), PERMISSIONS);
  }));
});

Deno.test("readEmbedded() says when an executable holds no permissions", () => {
  for (
    const bytes of [Buffer.alloc(0), MARK, Buffer.concat([MARK, length(2), Buffer.from("{}")])]
  ) {
    throws(() => readEmbedded(bytes), /it holds none/);
  }
});

const SET: PermissionSet = {
  read: { allow: ["/a", "/b"] },
  net: { allow: "all", deny: ["c"] },
  env: { ignore: ["D"] },
};
const SAME = {
  allow_read: ["/a", "/b"],
  allow_net: [],
  deny_net: ["c"],
  ignore_env: ["D"],
  allow_env: null,
  allow_import: [],
  deny_import: [],
  prompt: false,
};

Deno.test("differences() finds none where an executable grants what the set does", () => {
  deepEqual(differences(SAME, SET), []);
  deepEqual(differences({ ...SAME, allow_import: ["example.com"] }, SET), []);
});

Deno.test("differences() finds every permission too many or too few", () => {
  const wrong: readonly Record<string, readonly string[] | boolean | null>[] = [
    { allow_read: [] },
    { allow_read: ["/a"] },
    { allow_read: null },
    { deny_net: null },
    { ignore_env: null },
    { allow_env: [] },
    { allow_run: ["/bin/sh"] },
    { allow_ffi: [] },
    { deny_import: null },
    { prompt: true },
    { allow_all: true },
    { allow_tomorrow: [] },
  ];
  for (const change of wrong) {
    const found = differences({ ...SAME, ...change }, SET);
    equal(found.length, 1, JSON.stringify(change));
    match(found[0] ?? "", new RegExp(`^${Object.keys(change)[0]} is `));
  }
});
