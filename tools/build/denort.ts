/** The runtime that `deno compile` puts into executables, and what goes wrong with getting it. */
import { type Arch, targetOf } from "./runtime.ts";

/** How `deno compile` begins to say that it has no runtime to work with, on its way or from its file. */
const NO_RUNTIME = /Setting up base binary|denort/;

/** `words` of a failed `deno compile`, with what to do when it lacked the runtime for `arch`. */
export function explainCompileFailure(words: string, arch: Arch): string {
  if (!NO_RUNTIME.test(words)) return words;
  return `${words}\n\nThe runtime of executables was not to be had. Deno fetches it from ` +
    `its own releases, by HTTPS_PROXY where that is set. To do without: get ` +
    `denort-${
      targetOf(arch)
    }.zip of this Deno's version by other means, unpack it, and build with ` +
    `DENORT_BIN=/path/to/denort. Releases without --compile need none of this.`;
}

/** What to say of executables that were built around a whole Deno: they start as that. */
export function tellWholeDeno(path: string): string {
  return `These executables do not run: DENORT_BIN names a whole Deno (${path}), and they start ` +
    "as that. Name the denort of Deno's releases instead.";
}
