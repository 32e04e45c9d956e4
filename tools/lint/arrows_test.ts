import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import arrows from "./arrows.ts";
import { cycles, importsOnDisk } from "./cycles.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");

/** The rules that fire, each once, when `source` stands at `path`. */
function fired(path: string, source: string): string[] {
  const found = Deno.lint.runPlugin(arrows, `${ROOT}/${path}`, source);
  return [...new Set(found.map((d) => d.id.replace("heddle/", "")))].sort();
}

type Case = readonly [what: string, path: string, source: string];

const BREACHES: Readonly<Record<string, readonly Case[]>> = {
  rooms: [
    ["a room imports another", "router/a.ts", `import { x } from "../control/core/place.ts";`],
    ["by type only", "ctl/a.ts", `import type { x } from "../control/core/place.ts";`],
    ["by re-export", "ctl/a.ts", `export { x } from "../control/x.ts"; export const y = 1;`],
    ["dynamically", "agent/a.ts", `const m = await import("../sim/main.ts");`],
    ["in a type", "agent/a.ts", `export type T = import("../sim/main.ts").Sim;`],
    ["a test of a room imports another", "router/a_test.ts", `import "../sim/main.ts";`],
    ["a nested file climbs out", "sim/edge/a.ts", `import { x } from "../../router/serve.ts";`],
    ["common by relative path", "router/a.ts", `import { log } from "../common/log.ts";`],
    ["proto by relative path", "common/a.ts", `import { x } from "../proto/error.ts";`],
    ["proto imports common", "proto/a.ts", `import { log } from "@heddle/common/log";`],
    ["common imports a room", "common/a.ts", `import { x } from "../router/serve.ts";`],
    ["a program reaches into tests/", "sim/a.ts", `import { x } from "../tests/fixtures/x.ts";`],
    ["a program reaches into tools/", "sim/a.ts", `import { x } from "../tools/x.ts";`],
    ["a member that is none", "sim/a.ts", `import { x } from "@heddle/router/serve";`],
    ["a package not in deno.json", "sim/a.ts", `import _ from "lodash";`],
    ["a scoped package not in deno.json", "sim/a.ts", `import _ from "@foo/bar/baz";`],
    ["npm: in code", "sim/a.ts", `import { z } from "npm:zod@4";`],
    ["https: in code", "sim/a.ts", `import x from "https://example.com/x.ts";`],
    ["jsr: in code", "proto/a.ts", `import x from "jsr:@std/assert";`],
    ["out of the repository", "sim/a.ts", `import x from "../../elsewhere/x.ts";`],
    ["an absolute path", "sim/a.ts", `import x from "/etc/x.ts";`],
  ],
  "lasting-using": [
    ["used once, returned", "agent/a.ts", "function f() { using c = open(); return c.x; }"],
    ["awaited", "agent/a.ts", "async function f() { await using c = open(); return c.x; }"],
    ["in a block", "agent/a.ts", "function f() { try { using c = open(); go(c); } catch {} }"],
  ],
  layers: [
    ["edge imports root", "router/edge/a.ts", `import { serve } from "../serve.ts";`],
    ["edge imports a command", "ctl/edge/a.ts", `import type { x } from "../commands/x.ts";`],
    ["core imports edge", "router/core/a.ts", `import type { x } from "../edge/relay.ts";`],
    ["core imports root", "control/core/a.ts", `import { x } from "../loop.ts";`],
    ["core imports engines", "agent/core/a.ts", `import { x } from "../engines/vllm.ts";`],
    ["engines import edge", "agent/engines/a.ts", `import { x } from "../edge/probe.ts";`],
    ["core imports node:", "control/core/a.ts", `import { createHash } from "node:crypto";`],
    ["core imports a package", "router/core/a.ts", `import xxhash from "xxhash-wasm";`],
    ["core imports the log", "router/core/a.ts", `import { log } from "@heddle/common/log";`],
    ["a nested core file", "router/core/score/a.ts", `import { x } from "../../edge/x.ts";`],
    ["a program imports a fake", "control/loop.ts", `import { x } from "./edge/x_fake.ts";`],
  ],
  "pure-core": [
    ["Deno", "sim/core/a.ts", `Deno.readTextFileSync("x");`],
    ["the clock in the model's reader", "common/model/a.ts", `export const t = () => Date.now();`],
    ["a Deno type", "sim/core/a.ts", `export type C = Deno.Conn;`],
    ["Date.now", "sim/core/a.ts", `export const t = () => Date.now();`],
    ["Date.now by string", "sim/core/a.ts", `export const t = () => Date["now"]();`],
    ["Date.now as a default", "sim/core/a.ts", `export const t = (now = Date.now) => now;`],
    ["new Date()", "sim/core/a.ts", `export const t = new Date();`],
    ["Date()", "sim/core/a.ts", `export const t = Date();`],
    ["performance", "sim/core/a.ts", `export const t = performance.now();`],
    ["Temporal", "sim/core/a.ts", `export const t = Temporal.Now.instant();`],
    ["Math.random", "sim/core/a.ts", `export const t = Math.random();`],
    ["crypto", "sim/core/a.ts", `export const t = crypto.randomUUID();`],
    ["setTimeout", "sim/core/a.ts", `setTimeout(() => {}, 1);`],
    ["setInterval", "sim/core/a.ts", `setInterval(() => {}, 1);`],
    ["queueMicrotask", "sim/core/a.ts", `queueMicrotask(() => {});`],
    ["fetch", "sim/core/a.ts", `export const get = fetch;`],
    ["console", "sim/core/a.ts", `console.log(1);`],
    ["globalThis", "sim/core/a.ts", `globalThis.fetch("x");`],
    ["process", "sim/core/a.ts", `export const h = process.env.HOME;`],
    ["an async function", "sim/core/a.ts", `export async function f() {}`],
    ["an async arrow", "sim/core/a.ts", `export const f = async () => {};`],
    ["an async method", "sim/core/a.ts", `export class A { async f() {} }`],
    ["await", "sim/core/a.ts", `export const x = await 1;`],
    ["for await", "sim/core/a.ts", `for await (const x of y) x;`],
    ["a Promise type", "sim/core/a.ts", `export type P = Promise<void>;`],
    ["Promise.resolve", "sim/core/a.ts", `export const p = Promise.resolve(1);`],
    ["shorthand", "sim/core/a.ts", `export const o = { crypto };`],
    ["a computed key", "sim/core/a.ts", `export const o = { [fetch]: 1 };`],
  ],
  "gen-values": [
    ["core", "control/core/a.ts", `import { ShardState } from "@heddle/proto/gen/types";`],
    ["engines", "agent/engines/a.ts", `import { X } from "@heddle/proto/gen/types";`],
    [
      "one value among types",
      "control/core/a.ts",
      `import { type A, B } from "@heddle/proto/gen/types";`,
    ],
  ],
  barrels: [
    ["export *", "common/mod.ts", `export * from "./a.ts"; export * from "./b.ts";`],
    ["named", "sim/index.ts", `export { a } from "./a.ts";`],
    ["types", "sim/types.ts", `export type { A } from "./a.ts";`],
    ["import, then export", "sim/x.ts", `import { a } from "./a.ts"; export { a };`],
    ["outside rooms too", "tests/mod.ts", `export * from "./a.ts";`],
  ],
};

for (const [rule, cases] of Object.entries(BREACHES)) {
  for (const [what, path, source] of cases) {
    Deno.test(`${rule}: refuses ${what}`, () => {
      assert.ok(fired(path, source).includes(rule), `nothing said about: ${source}`);
    });
  }
}

const ALLOWED: readonly Case[] = [
  ["what lasts", "agent/a.ts", "function f() { using c = open(); go(c); return c.x; }"],
  ["a lock that nobody names", "agent/a.ts", "function f() { using _lock = lock(); return go(); }"],
  ["what no release holds", "tools/a.ts", "function f() { using c = open(); return c.x; }"],
  ["own room", "router/a.ts", `import { x } from "./core/pick.ts"; x();`],
  ["proto and common by name", "router/a.ts", `import { l } from "@heddle/common/log"; l();`],
  ["packages of deno.json", "sim/a.ts", `import { z } from "zod"; z;`],
  ["their subpaths", "sim/a.ts", `import { c } from "@connectrpc/connect/protocol"; c;`],
  ["node:", "router/edge/a.ts", `import http from "node:http"; http;`],
  ["root imports edge and core", "router/a.ts", `import "./edge/a.ts"; import "./core/a.ts";`],
  ["edge imports core", "router/edge/a.ts", `import { x } from "../core/a.ts"; x;`],
  ["edge imports engines", "agent/edge/a.ts", `import { x } from "../engines/a.ts"; x;`],
  ["commands import root", "ctl/commands/nodes/list.ts", `import { t } from "../../table.ts"; t;`],
  ["core imports core, proto, zod", "control/core/a.ts", `import { z } from "zod"; z;`],
  ["core imports common", "control/core/a.ts", `import { x } from "@heddle/common/x"; x;`],
  ["core imports a type", "control/core/a.ts", `import type { M } from "@bufbuild/protobuf";`],
  ["core, gen by type", "control/core/a.ts", `import type { N } from "@heddle/proto/gen/types";`],
  [
    "core, every name by type",
    "control/core/a.ts",
    `import { type N } from "@heddle/proto/gen/t";`,
  ],
  ["edge, gen by value", "control/edge/a.ts", `import { N } from "@heddle/proto/gen/types"; N;`],
  ["root, gen by value", "control/a.ts", `import { N } from "@heddle/proto/gen/types"; N;`],
  ["new Date(ms)", "sim/core/a.ts", `export const t = (ms: number) => new Date(ms);`],
  ["members of those names", "sim/core/a.ts", `export const f = (x: X) => x.fetch + x.console;`],
  ["keys of those names", "sim/core/a.ts", `export interface X { process: string; fetch(): void }`],
  [
    "an own variable",
    "sim/core/a.ts",
    `export const f = (ps: P[]) => { for (const process of ps) g(process.pid); };`,
  ],
  ["an own parameter", "sim/core/a.ts", `export const f = (process: P) => process.pid;`],
  [
    "an own property",
    "sim/core/a.ts",
    `export const f = ({ process, x: fetch }: P) => process + fetch;`,
  ],
  ["an own default", "sim/core/a.ts", `export const f = (process = 1) => process;`],
  ["a name in a type", "sim/core/a.ts", `export type F = (process: P) => void;`],
  ["effects as data", "sim/core/a.ts", `export const e = { kind: "crypto", fetch: true };`],
  ["effects in edge", "sim/edge/a.ts", `export async function f() { await fetch("x"); }`],
  [
    "a core test is free",
    "sim/core/a_test.ts",
    `import fc from "fast-check"; await fc; Date.now();`,
  ],
  [
    "a test reaches into tests/",
    "agent/a_test.ts",
    `import { x } from "../tests/fixtures/x.ts"; x;`,
  ],
  ["a test imports a fake", "control/loop_test.ts", `import { x } from "./edge/x_fake.ts"; x;`],
  [
    "tests cross rooms",
    "tests/e2e/a_test.ts",
    `import "../../router/a.ts"; import "../../sim/a.ts";`,
  ],
  ["tools import rooms", "tools/schema/a.ts", `import { c } from "../../control/config.ts"; c;`],
  ["a file with a word of its own", "common/a.ts", `export * from "./b.ts"; export const x = 1;`],
  ["a file that exports nothing", "common/a.ts", `export {};`],
  ["a folder that is no room", "controlled/core/a.ts", `Date.now();`],
];

for (const [what, path, source] of ALLOWED) {
  Deno.test(`arrows allow: ${what}`, () => assert.deepEqual(fired(path, source), []));
}

Deno.test("every message says what to do instead", () => {
  for (const [path, source] of Object.values(BREACHES).flat().map(([, p, s]) => [p, s] as const)) {
    for (const { message } of Deno.lint.runPlugin(arrows, `${ROOT}/${path}`, source)) {
      assert.match(message, /: .{20,}|\. .{20,}/, message);
    }
  }
});

Deno.test("cycles: names the whole way round, by type or by value", () => {
  const files: Record<string, readonly string[]> = {
    "sim/b.ts": ["sim/c.ts", "sim/d.ts"],
    "sim/c.ts": ["sim/a.ts"],
    "sim/d.ts": [],
  };
  const plugin = { name: "t", rules: { cycles: cycles(ROOT, (path) => files[path] ?? []) } };
  const found = Deno.lint.runPlugin(
    plugin,
    `${ROOT}/sim/a.ts`,
    `import { d } from "./d.ts"; import type { B } from "./b.ts"; export const x: B = d;`,
  );
  assert.equal(found.length, 1);
  assert.match(found[0]?.message ?? "", /sim\/a\.ts → sim\/b\.ts → sim\/c\.ts → sim\/a\.ts/);
});

Deno.test("cycles: a file that imports itself is one", () => {
  const plugin = { name: "t", rules: { cycles: cycles(ROOT, () => []) } };
  const source = `import { x } from "./a.ts"; export const y = x;`;
  assert.equal(Deno.lint.runPlugin(plugin, `${ROOT}/sim/a.ts`, source).length, 1);
});

/** A checkout in miniature, with these rules and one planted file per rule. */
async function plant(root: string): Promise<void> {
  const write = async (path: string, text: string): Promise<void> => {
    await Deno.mkdir(`${root}/${path}`.replace(/\/[^/]*$/, ""), { recursive: true });
    await Deno.writeTextFile(`${root}/${path}`, text);
  };
  for await (const entry of Deno.readDir(`${ROOT}/tools/lint`)) {
    if (!entry.isFile || entry.name.endsWith("_test.ts")) continue;
    await write(
      `tools/lint/${entry.name}`,
      await Deno.readTextFile(`${ROOT}/tools/lint/${entry.name}`),
    );
  }
  await write(
    "deno.json",
    JSON.stringify({ imports: {}, lint: { plugins: ["./tools/lint/arrows.ts"] } }),
  );
  await write("router/a.ts", `import { x } from "../sim/c.ts";\nexport const a = x;\n`);
  await write("router/edge/b.ts", `import { a } from "../a.ts";\nexport const b = a;\n`);
  await write("sim/core/d.ts", `export const d = Date.now();\n`);
  await write("sim/core/e.ts", `import { A } from "@heddle/proto/gen/t";\nexport const e = A;\n`);
  await write("sim/c.ts", `import { y } from "./f.ts";\nexport const x = y;\n`);
  await write("sim/f.ts", `import { x } from "./c.ts";\nexport const y = x;\n`);
  await write("sim/g.ts", `export * from "./c.ts";\n`);
  await write("sim/h.ts", `export function h() {\n  using x = open();\n  return x.y;\n}\n`);
}

Deno.test("deno lint runs every rule, from files on disk", async () => {
  const root = await Deno.realPath(await Deno.makeTempDir({ prefix: "heddle-arrows-" }));
  try {
    await plant(root);
    const { stdout } = await new Deno.Command(Deno.execPath(), {
      args: ["lint", "--json"],
      cwd: root,
    }).output();
    const report: { diagnostics: { code: string }[] } = JSON.parse(
      new TextDecoder().decode(stdout),
    );
    const codes = new Set(report.diagnostics.map((d) => d.code));
    for (const rule of Object.keys(arrows.rules)) {
      assert.ok(codes.has(`heddle/${rule}`), `heddle/${rule} found nothing`);
    }
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});

Deno.test("importsOnDisk() reads every form of import and ignores packages", async () => {
  const root = await Deno.makeTempDir({ prefix: "heddle-imports-" });
  try {
    await Deno.mkdir(`${root}/sim/core`, { recursive: true });
    await Deno.writeTextFile(
      `${root}/sim/core/a.ts`,
      [
        `import "./side.ts";`,
        `import {\n  one,\n} from "./multi.ts";`,
        `import type { T } from "../t.ts";`,
        `export * from './star.ts';`,
        `const m = await import("./lazy.ts");`,
        `import { z } from "zod";`,
      ].join("\n"),
    );
    assert.deepEqual(importsOnDisk(root)("sim/core/a.ts"), [
      "sim/core/side.ts",
      "sim/core/multi.ts",
      "sim/t.ts",
      "sim/core/star.ts",
      "sim/core/lazy.ts",
    ]);
    assert.deepEqual(importsOnDisk(root)("sim/core/none.ts"), []);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});
