/**
 * A program that tries what it has no business with, in the place of a real one: started by that
 * one's own launcher, it finds what that launcher lets through.
 */
import { equal, ok } from "node:assert/strict";
import { join } from "node:path";
import type { Program } from "../../tools/build/program.ts";
import { ROOT, runCommand } from "./heddle.ts";

const PROBE = `
const [outside, queries] = Deno.args;
const remote = "https://example.invalid/x.ts";
const npm = "npm:zod@4.6.7";
const probes = {
  read: () => Deno.readTextFile("/etc/shadow"),
  write: () => Deno.writeTextFile(outside + "/escaped", "x"),
  run: () => new Deno.Command("/bin/sh", { args: ["-c", "true"] }).output(),
  ffi: () => Deno.dlopen("libc.so.6", { getpid: { parameters: [], result: "i32" } }),
  env: () => Deno.env.get("SHELL_SECRET"),
  import: () => import(remote),
  importStatic: () => import("https://example.invalid/y.ts"),
  importPackage: () => import(npm),
};
const found = {};
for (const [name, probe] of Object.entries(probes)) {
  try {
    await probe();
    found[name] = "allowed";
  } catch (error) {
    found[name] = error.name + ": " + error.message;
  }
}
const granted = JSON.parse(queries).map((query) =>
  Deno.permissions.querySync(query).state === "granted"
);
console.log(JSON.stringify({ found, granted }));
`;

/** Where the launchers are: the repository's, or those of a release. */
export type Launchers = { readonly kind: "repository" } | {
  readonly kind: "release";
  readonly dist: string;
};

export interface Probed {
  /** For each thing that was tried, "allowed" or the error. */
  readonly found: Readonly<Record<string, string>>;
  /** For each query, whether it is granted. */
  readonly granted: readonly boolean[];
}

export interface ProbeOptions {
  readonly launchers: Launchers;
  /** Asked of Deno about itself. */
  readonly queries?: readonly Deno.PermissionDescriptor[];
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts the probe as `program` would be started. */
export async function probe(program: Program, options: ProbeOptions): Promise<Probed> {
  const folder = await Deno.realPath(await Deno.makeTempDir({ prefix: "heddle-permissions-" }));
  try {
    const outside = join(folder, "outside");
    const state = join(folder, "state");
    for (const path of [outside, state, join(folder, "bin")]) await Deno.mkdir(path);
    const queries = (options.queries ?? []).map((query) => inFolder(query, folder));
    const launcher = await layOut(program, options.launchers, folder);
    const result = await runCommand(launcher, [outside, JSON.stringify(queries)], {
      HEDDLE_DENO: Deno.execPath(),
      SHELL_SECRET: "x",
      ...(options.env ?? { HEDDLE_STATE: state }),
    });
    equal(result.code, 0, result.stderr);
    return JSON.parse(result.stdout);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Queries about `./x` mean the folder that the program is in. */
function inFolder(query: Deno.PermissionDescriptor, folder: string): Deno.PermissionDescriptor {
  const text = JSON.stringify(
    query,
    (_key, value) =>
      typeof value === "string" && value.startsWith("./") ? join(folder, value) : value,
  );
  return JSON.parse(text);
}

// Around a copy of the launcher, so much of a repository or a release as it looks for.
async function layOut(program: Program, launchers: Launchers, folder: string): Promise<string> {
  const launcher = join(folder, "bin", program.name);
  if (launchers.kind === "release") {
    await Deno.copyFile(join(launchers.dist, "bin", program.name), launcher);
    await Deno.symlink(join(launchers.dist, "runtime"), join(folder, "runtime"));
    await Deno.mkdir(join(folder, "lib"));
    await Deno.writeTextFile(join(folder, "lib", `${program.name}.mjs`), PROBE);
    return launcher;
  }
  await Deno.copyFile(join(ROOT, "bin", program.name), launcher);
  const { permissions } = JSON.parse(await Deno.readTextFile(join(ROOT, "deno.json")));
  ok(permissions[program.room]);
  await Deno.writeTextFile(join(folder, "deno.json"), JSON.stringify({ permissions }));
  await Deno.mkdir(join(folder, program.folder), { recursive: true });
  await Deno.writeTextFile(join(folder, program.folder, "main.ts"), PROBE);
  return launcher;
}

/** Demands that nothing which was tried was allowed. */
export function demandRefused({ found }: Probed): void {
  for (const name of ["read", "write", "run", "ffi", "env"]) {
    ok(found[name]?.startsWith("NotCapable"), `${name}: ${found[name]}`);
  }
  for (const name of ["import", "importStatic"]) {
    // Refused before anything is asked of the network: by permission, or by --no-remote.
    ok(
      /NotCapable|Requires import access|remote specifier was specified|--no-remote/i.test(
        found[name] ?? "",
      ),
      `${name}: ${found[name]}`,
    );
  }
}
