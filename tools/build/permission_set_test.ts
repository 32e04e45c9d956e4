import { deepEqual, throws } from "node:assert/strict";
import { flagsOf, readGrants, settle } from "./permission_set.ts";

function config(set: unknown, unstable?: readonly string[]): string {
  return JSON.stringify({ permissions: { x: set }, ...(unstable && { unstable }) });
}

function flags(set: unknown, unstable?: readonly string[]): readonly string[] {
  return flagsOf(readGrants(config(set, unstable), "x"));
}

Deno.test("flagsOf() writes every form that a set can have", () => {
  const cases: readonly (readonly [unknown, readonly string[]])[] = [
    [{}, ["--deny-import"]],
    [{ read: false, net: { allow: false } }, ["--deny-import"]],
    [{ net: true }, ["--allow-net", "--deny-import"]],
    [{ net: { allow: true, deny: ["a:1", "[::1]"] } }, [
      "--allow-net",
      "--deny-net=a:1,[::1]",
      "--deny-import",
    ]],
    [{ env: { allow: ["A_*"], ignore: ["B"], deny: ["A_C"] } }, [
      "--allow-env=A_*",
      "--deny-env=A_C",
      "--ignore-env=B",
      "--deny-import",
    ]],
    [{ env: { ignore: true } }, ["--ignore-env", "--deny-import"]],
    [{ import: ["example.com"] }, ["--allow-import=example.com"]],
    [{ ffi: ["/a"], sys: ["hostname"], run: ["/b"], write: ["/c"], read: ["/d", "/e"] }, [
      "--allow-read=/d,/e",
      "--allow-write=/c",
      "--allow-sys=hostname",
      "--allow-run=/b",
      "--allow-ffi=/a",
      "--deny-import",
    ]],
  ];
  for (const [set, expected] of cases) deepEqual(flags(set), expected);
});

Deno.test("flagsOf() switches on what deno.json calls unstable", () => {
  deepEqual(flags({ net: true }, ["net", "worker-options"]), [
    "--unstable-net",
    "--unstable-worker-options",
    "--allow-net",
    "--deny-import",
  ]);
});

Deno.test("readGrants() refuses what cannot be said in flags, and says where it is", () => {
  const cases: readonly (readonly [unknown, RegExp])[] = [
    [{ all: true }, /permissions\.x/],
    [{ read: ["/a,/b"] }, /permissions\.x\.read/],
    [{ read: [] }, /permissions\.x\.read/],
    [{ read: [""] }, /permissions\.x\.read/],
    [{ raed: true }, /permissions\.x/],
    [{ net: { allow: true, denied: ["a"] } }, /permissions\.x\.net/],
    ["all", /permissions\.x/],
  ];
  for (const [set, words] of cases) throws(() => readGrants(config(set), "x"), words);
  throws(() => readGrants(config({}), "y"), /no such permissions/);
  throws(() => readGrants("{}", "x"), /permissions/);
});

Deno.test("settle() puts the root before relative paths and nothing else", () => {
  const { set } = readGrants(
    config({ read: ["./a", "/b/./c", ".d"], run: { allow: ["./bin/x"], deny: true }, net: true }),
    "x",
  );
  deepEqual(settle(set, { root: "/r$&" }), {
    read: { allow: ["/r$&/a", "/b/./c", ".d"] },
    net: { allow: "all" },
    run: { allow: ["/r$&/bin/x"], deny: "all" },
  });
});

Deno.test("settle() with a state leaves one folder, to those who had files at all", () => {
  const { set } = readGrants(config({ read: ["/a"], write: ["/b"], sys: ["hostname"] }), "x");
  deepEqual(settle(set, { root: "/r", state: "/s" }), {
    read: { allow: ["/s"] },
    write: { allow: ["/s"] },
    sys: { allow: ["hostname"] },
  });
  deepEqual(settle({}, { root: "/r", state: "/s" }), {});
});
