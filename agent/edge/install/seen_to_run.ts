/** An engine counts only after it was seen to run: for this processor, with its libraries, in words. */
import { engineVersion } from "../../core/engine_version.ts";
import { machineOf, missingLibraries } from "../../core/install/elf.ts";
import { InstallError } from "../../core/install/install_documents.ts";
import { dirname } from "node:path";
import { lastWords, probeCommand, runCommand } from "./run_command.ts";

const LDD = "/usr/bin/ldd";
/** A Python engine reads gigabytes of libraries before it says its version. */
const VERSION_SECONDS = 180;
const LDD_SECONDS = 60;
const ELF_BYTES = 64;

/** Its version. Throws `wrong_architecture`, `library_missing` or `does_not_run`. */
export async function seenToRun(
  program: string,
  how: { readonly arch: string; readonly shim: string; readonly signal: AbortSignal },
): Promise<string> {
  const { arch, shim, signal } = how;
  const machine = machineOf(await startOf(program));
  if (machine !== undefined) {
    if (machine !== arch) {
      throw new InstallError(
        "wrong_architecture",
        `${program} is for ${machine}, and this machine is ${arch}`,
      );
    }
    const { said } = await runCommand([LDD, program], { seconds: LDD_SECONDS, signal });
    const missing = missingLibraries(said);
    if (missing.length > 0) {
      throw new InstallError(
        "library_missing",
        `${program} needs ${missing.join(", ")}, which this machine lacks: install the packages ` +
          "that have them",
      );
    }
  }
  const { code, said } = await probeCommand([program, "--version"], {
    shim,
    folder: dirname(program),
    seconds: VERSION_SECONDS,
  });
  signal.throwIfAborted();
  const version = code === 0 ? engineVersion(said) : undefined;
  if (version !== undefined) return version;
  throw new InstallError(
    "does_not_run",
    `${program} --version ended with code ${code}: ${lastWords(said) || "it said nothing"}`,
  );
}

async function startOf(program: string): Promise<Uint8Array> {
  try {
    using file = await Deno.open(program);
    const bytes = new Uint8Array(ELF_BYTES);
    const count = await file.read(bytes) ?? 0;
    return bytes.subarray(0, count);
  } catch {
    throw new InstallError("does_not_run", `${program} is not there`);
  }
}
