/** Single-file executables: runtime, program and permission set in one. */
import { HeddleError } from "@heddle/proto/error";
import { execute } from "./command.ts";
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

/** Writes bin/NAME for every program. Throws `system`, also when one was given other permissions. */
export async function writeExecutables(options: CompileOptions): Promise<void> {
  const { folder, arch, places, grantsOf } = options;
  for (const { room, name } of PROGRAMS) {
    const { set, unstable } = grantsOf(room);
    const settled = settle(set, places);
    const path = `${folder}/bin/${name}`;
    await execute(Deno.execPath(), [
      "compile",
      "--quiet",
      "--no-check",
      "--bundle",
      "--minify",
      "--frozen",
      "--target",
      targetOf(arch),
      "--no-prompt",
      "--no-remote",
      "--cached-only",
      ...flagsOf({ set: settled, unstable }),
      "--output",
      path,
      `${room}/main.ts`,
    ]);
    const wrong = differences(readEmbedded(await Deno.readFile(path)), settled);
    if (wrong.length > 0) {
      throw new HeddleError("system", `Cannot release ${name}: its ${wrong.join("; its ")}`);
    }
  }
}
