/** Single-file executables: runtime, program and permission set in one. */
import { HeddleError } from "@heddle/proto/error";
import { execute } from "./command.ts";
import { explainCompileFailure } from "./denort.ts";
import { differences, readEmbedded } from "./embedded.ts";
import { flagsOf, type Grants, type Places, settle } from "./permission_set.ts";
import { PROGRAMS } from "./program.ts";
import { type Arch, targetOf } from "./runtime.ts";

export interface CompileOptions {
  /** Release to write bin/ of. */
  readonly folder: string;
  readonly arch: Arch;
  /** Baked in; nothing moves them later. */
  readonly places: Places;
  readonly grantsOf: (room: string) => Grants;
}

/**
 * Turns lib/ into bin/: an executable for every bundle, with that very bundle in it. Letting
 * `deno compile --bundle` make its own would embed the same text under a random name, and no two
 * builds would be alike. Throws `system`, also when one was given other permissions than its set.
 */
export async function writeExecutables(options: CompileOptions): Promise<void> {
  const { folder, places, grantsOf } = options;
  for (const { room, name } of PROGRAMS) {
    const { set, unstable } = grantsOf(room);
    const settled = settle(set, places);
    const bundle = `${folder}/lib/${name}.mjs`;
    const path = `${folder}/bin/${name}`;
    // The time of the file is embedded too.
    await Deno.utime(bundle, 0, 0);
    await compile(options.arch, [
      "compile",
      ...FLAGS,
      "--target",
      targetOf(options.arch),
      ...flagsOf({ set: settled, unstable }),
      "--output",
      path,
      bundle,
    ]);
    const wrong = differences(readEmbedded(await Deno.readFile(path)), settled);
    if (wrong.length > 0) {
      throw new HeddleError("system", `Cannot release ${name}: its ${wrong.join("; its ")}`);
    }
  }
  await Deno.remove(`${folder}/lib`, { recursive: true });
}

async function compile(arch: Arch, args: readonly string[]): Promise<void> {
  try {
    await execute(Deno.execPath(), args);
  } catch (error) {
    if (!(error instanceof HeddleError)) throw error;
    throw new HeddleError("system", explainCompileFailure(error.message, arch));
  }
}

const FLAGS = [
  "--quiet",
  "--no-check",
  "--no-config",
  "--no-lock",
  "--no-npm",
  "--no-prompt",
  "--no-remote",
  // Not only for what is fetched: without it the hosts of `allow_import` come in any order.
  "--cached-only",
];
