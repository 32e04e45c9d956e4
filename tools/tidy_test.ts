/** Style as a test: what a reviewer would otherwise have to see, and say again, every time. */
import assert from "node:assert/strict";
import { homedir } from "node:os";
import config from "../deno.json" with { type: "json" };
import { readSources, ROOT, type SourceFile } from "./repository.ts";
import { bannedText, ownPaths } from "./tidy/banned.ts";
import { deadReferences } from "./tidy/doc_links.ts";
import { deadExports } from "./tidy/dead_exports.ts";
import { vagueNames } from "./tidy/names.ts";
import { CASTS, FULL_FOLDERS, LONG_FILES, LONG_FUNCTIONS } from "./tidy/record.ts";
import { casts, fullFolders, longFiles, longFunctions, ratchet } from "./tidy/sizes.ts";

const SOURCES = readSources(ROOT);

function assertNone(found: readonly string[]): void {
  assert.equal(found.length, 0, `\n${found.join("\n")}\n`);
}

Deno.test("nothing banned is written anywhere", () => assertNone(bannedText(SOURCES)));

Deno.test("no file names a folder of the machine it was written on", () => {
  const folders = [ROOT, homedir()].filter((folder) => folder.split("/").length > 2);
  assertNone(ownPaths(SOURCES, folders));
});

Deno.test("functions fit a screen", () => {
  assertNone(ratchet(longFunctions(SOURCES), LONG_FUNCTIONS));
});

Deno.test("files hold one idea", () => assertNone(ratchet(longFiles(SOURCES), LONG_FILES)));

Deno.test("folders can be read at a glance", () => {
  assertNone(ratchet(fullFolders(SOURCES), FULL_FOLDERS));
});

Deno.test("types are parsed, not claimed", () => assertNone(ratchet(casts(SOURCES), CASTS)));

Deno.test("names say what is inside", () => assertNone(vagueNames(SOURCES)));

Deno.test("every export of the product is used", () => assertNone(deadExports(SOURCES)));

Deno.test("documents name only what exists", () => {
  const exists = (path: string): boolean => {
    try {
      return Deno.statSync(`${ROOT}/${path}`) !== undefined;
    } catch {
      return false;
    }
  };
  assertNone(deadReferences(SOURCES, exists, Object.keys(config.tasks)));
});

Deno.test("no program's permission set is open", () => {
  const open: string[] = [];
  for (const [name, set] of Object.entries(config.permissions)) {
    if ("all" in set) open.push(`${name}: "all" is no set`);
    if ("ffi" in set) open.push(`${name}: ffi voids the sandbox`);
    if (!["control", "router", "agent", "ctl", "sim"].includes(name)) continue;
    for (const kind of ["read", "write", "run", "env", "sys"]) {
      if (Object.entries(set).some(([key, value]) => key === kind && value === true)) {
        open.push(`${name}: "${kind}" is open: list what it needs`);
      }
    }
  }
  assertNone(open);
});

Deno.test("the code generator is the version that deno.json pins", () => {
  const yaml = SOURCES.find(({ path }) => path === "proto/buf.gen.yaml")?.text ?? "";
  const pinned = config.imports["@bufbuild/protoc-gen-es"];
  assert.ok(yaml.includes(`"${pinned}"`), `write ${pinned} in proto/buf.gen.yaml`);
});

/** Runs a rule over one planted file. */
function planted<T>(rule: (files: readonly SourceFile[]) => T, path: string, text: string): T {
  return rule([{ path, text }]);
}

const BANNED: readonly (readonly [path: string, text: string])[] = [
  ["router/a.ts", `args: ["run", "--allow-all"]`],
  ["tools/a.ts", `args: ["run", "-A"]`],
  ["bin/heddle-x", "exec deno run -A x.ts"],
  ["README.md", "deno run -A npm:foo"],
  ["sim/a.ts", "// TODO(me): later"],
  ["docs/a.md", "FIXME"],
  ["docs/a.md", "see issue #12"],
  ["sim/a.ts", "// deno-lint-ignore heddle/layers"],
  ["router/a.ts", "Deno.serve(() => x)"],
  ["agent/a.ts", "Deno.kill(1)"],
  ["agent/edge/a.ts", "Deno.exit(1)"],
  ["agent/edge/a.ts", `Deno.env.get("HOME")`],
  ["control/core/a.ts", "structuredClone(world)"],
  ["sim/a_test.ts", "await new Promise((r) => setTimeout(r, 100))"],
  ["sim/a_test.ts", "await delay(50)"],
  ["sim/a_test.ts", "Deno.test.only(x)"],
];

for (const [path, text] of BANNED) {
  Deno.test(`tidy finds ${JSON.stringify(text)} in ${path}`, () => {
    const found = planted(bannedText, path, `\n${text}\n`);
    assert.equal(found.length, 1, found.join("\n"));
    assert.ok(found[0]?.startsWith(`${path}:2: `));
  });
}

const FINE: readonly (readonly [path: string, text: string])[] = [
  ["docs/security.md", "No program runs with --allow-all."],
  ["docs/a.md", "vllm-project/vllm#12345 explains it"],
  ["agent/main.ts", `Deno.exit(1); Deno.env.get("HEDDLE_X")`],
  ["tests/fixtures/a.ts", "TODO"],
  ["sim/edge/a.ts", "setTimeout(resolve, 100)"],
];

for (const [path, text] of FINE) {
  Deno.test(`tidy lets ${JSON.stringify(text)} be in ${path}`, () => {
    assert.deepEqual(planted(bannedText, path, text), []);
  });
}

Deno.test("tidy measures functions of every kind by their lines", () => {
  const body = "{\n" + "  x();\n".repeat(69) + "}";
  const text = [
    `function one() ${body}`,
    `const two = () => ${body};`,
    `class C { three() ${body} }`,
    `Deno.test("four", async () => ${body});`,
    `function five() ${body.replace("  x();\n", "")}`,
  ].join("\n");
  assert.deepEqual(
    [...planted(longFunctions, "sim/a.ts", text)],
    [["sim/a.ts one", 71], ["sim/a.ts two", 71], ["sim/a.ts three", 71], ["sim/a.ts four", 71]],
  );
});

Deno.test("tidy measures files and folders, and leaves out what nobody writes", () => {
  assert.deepEqual([...planted(longFiles, "sim/a.ts", "x\n".repeat(401))], [["sim/a.ts", 401]]);
  assert.deepEqual([...planted(longFiles, "sim/a.ts", "x\n".repeat(400))], []);
  assert.deepEqual([...planted(longFiles, "sim/a_test.ts", "x\n".repeat(600))], []);
  assert.equal(planted(longFiles, "sim/a_test.ts", "x\n".repeat(601)).size, 1);
  assert.deepEqual([...planted(longFiles, "proto/gen/a.ts", "x\n".repeat(900))], []);
  const full = Array.from({ length: 13 }, (_, i) => ({ path: `sim/core/a${i}.ts`, text: "" }));
  assert.deepEqual([...fullFolders(full)], [["sim/core", 13]]);
  assert.deepEqual([...fullFolders(full.slice(1))], []);
});

Deno.test("tidy counts casts, and neither `as const` nor renamed imports", () => {
  const text = `import { a as b } from "./x.ts"; const c = b as string; const d = [c] as const; d;`;
  assert.deepEqual([...planted(casts, "sim/a.ts", text)], [["sim/a.ts", 1]]);
  assert.deepEqual([...planted(casts, "sim/a_test.ts", text)], []);
});

Deno.test("tidy excuses a cast whose reason stands beside it", () => {
  const above = "// The schema has been checked two lines up.\nconst c = b as string;";
  assert.deepEqual([...planted(casts, "sim/a.ts", above)], []);
  assert.deepEqual([...planted(casts, "sim/a.ts", "const c = b as string; // Checked above.")], []);
  assert.equal(planted(casts, "sim/a.ts", `${above}\nconst d = b as string;`).size, 1);
});

Deno.test("the ratchet only turns one way", () => {
  const found = new Map([["new", 80], ["grown", 90], ["same", 75], ["shrunk", 71]]);
  const said = ratchet(found, { grown: 80, same: 75, shrunk: 90, gone: 72 });
  assert.deepEqual(said.map((line) => line.split(":")[0]), ["new", "grown", "shrunk", "gone"]);
});

Deno.test("tidy finds names that say nothing", () => {
  assert.equal(planted(vagueNames, "sim/utils.ts", "").length, 1);
  assert.equal(planted(vagueNames, "sim/helpers/x.ts", "").length, 1);
  assert.equal(planted(vagueNames, "sim/camelCase.ts", "").length, 1);
  assert.equal(planted(vagueNames, "sim/a.ts", "export class SlotManager {}").length, 1);
  assert.equal(planted(vagueNames, "sim/a.ts", "export interface IStore {}").length, 1);
  assert.deepEqual(planted(vagueNames, "sim/slot.ts", "export interface Inventory {}"), []);
});

Deno.test("tidy finds exports that nobody imports", () => {
  const a = { path: "sim/a.ts", text: "export function used() {}\nexport const dead = 1;\n" };
  const b = { path: "sim/b_test.ts", text: `import { used } from "./a.ts";` };
  const found = deadExports([a, b]);
  assert.equal(found.length, 1);
  assert.match(found[0] ?? "", /"dead"/);
});

Deno.test("tidy finds files and tasks that documents only imagine", () => {
  const text = "`agent/a.ts`, `agent/b.ts`, `agent/NAME.ts`, [x](../b.md#top), deno task fly, " +
    "npx -y deno@2.9.6 task ok, [y](https://example.com/z.md)";
  const exists = (path: string): boolean => path === "agent/a.ts";
  const found = deadReferences([{ path: "docs/a.md", text }], exists, ["ok"]);
  assert.equal(found.length, 3, found.join("\n"));
  assert.match(found.join("\n"), /agent\/b\.ts[^]*names b\.md[^]*"fly"/);
});

Deno.test("tidy finds the folder a file was written in", () => {
  const file = { path: "docs/a.md", text: "cd /somewhere/main && ls" };
  assert.equal(ownPaths([file], ["/somewhere/main"]).length, 1);
  assert.equal(ownPaths([file], ["/somewhere/mai"]).length, 0);
});
