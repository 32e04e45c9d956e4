/**
 * A release is a folder that is complete in itself, to be copied to /opt/heddle/releases/VERSION:
 *
 *     bin/          what is started: a launcher for each program (or an executable), and helpers
 *     lib/          a bundle for each program               (not with executables)
 *     runtime/deno  the Deno that runs them                 (not with executables)
 *     release.json  version, machines, form, Deno
 *     LICENSE  SHA256SUMS
 *
 * Built from the same sources it holds the same bytes, wherever and whenever that is done.
 */
import { VERSION } from "@heddle/common/version";
import { HeddleError } from "@heddle/proto/error";
import { ROOT } from "../repository.ts";
import { writeBundles } from "./bundle.ts";
import { writeExecutables } from "./compile.ts";
import { launcherText } from "./launcher.ts";
import type { BuildOptions } from "./options.ts";
import { readGrants } from "./permission_set.ts";
import { PROGRAMS } from "./program.ts";
import { demandPinnedDeno, DENO_VERSION, findRuntime } from "./runtime.ts";
import { writeSums } from "./sums.ts";

const RELEASE = "release.json";

/** Writes the release to `options.out`, which appears whole or stays as it was. */
export async function writeRelease(options: BuildOptions): Promise<void> {
  demandPinnedDeno();
  demandReplaceable(options.out);
  const parent = options.out.replace(/\/[^/]*$/, "") || "/";
  // On the same disk, so that it can be moved; in the repository, where no other tool looks.
  const workshop = parent === ROOT ? `${ROOT}/.heddle` : parent;
  await Deno.mkdir(workshop, { recursive: true });
  const folder = await Deno.makeTempDir({ dir: workshop, prefix: ".heddle-build-" });
  try {
    await Deno.mkdir(`${folder}/bin`);
    await writeParts(folder, options);
    await writeSums(folder);
    await setModes(folder);
    await replace(options.out, folder);
  } catch (error) {
    await Deno.remove(folder, { recursive: true });
    throw error;
  }
}

async function writeParts(folder: string, options: BuildOptions): Promise<void> {
  const { arch, form } = options;
  const config = await Deno.readTextFile(`${ROOT}/deno.json`);
  await writeBundles(folder);
  if (form === "compile") {
    const places = {
      root: options.prefix,
      ...(options.state === undefined ? {} : { state: options.state }),
    };
    const grantsOf = (room: string) => readGrants(config, room);
    await writeExecutables({ folder, arch, places, grantsOf });
  } else {
    for (const program of PROGRAMS) {
      const text = launcherText(program, readGrants(config, program.room), "release");
      await Deno.writeTextFile(`${folder}/bin/${program.name}`, text);
    }
    await Deno.mkdir(`${folder}/runtime`);
    await Deno.copyFile(await findRuntime(arch), `${folder}/runtime/deno`);
  }
  for (const name of helperScripts()) {
    await Deno.copyFile(`${ROOT}/bin/${name}`, `${folder}/bin/${name}`);
  }
  await Deno.copyFile(`${ROOT}/LICENSE`, `${folder}/LICENSE`);
  const about = { version: VERSION, arch, form, deno: DENO_VERSION };
  await Deno.writeTextFile(`${folder}/${RELEASE}`, `${JSON.stringify(about, null, 2)}\n`);
}

/** What bin/ holds beside the launchers: heddle-shim. */
function helperScripts(): readonly string[] {
  const launchers = PROGRAMS.map(({ name }) => name);
  return [...Deno.readDirSync(`${ROOT}/bin`)].filter(({ isFile, name }) =>
    isFile && !launchers.includes(name)
  ).map(({ name }) => name).sort();
}

/** Whatever the umask and the sources' own modes: all may read, and run what is to be run. */
async function setModes(folder: string): Promise<void> {
  for (const { name, isDirectory } of Deno.readDirSync(folder)) {
    const path = `${folder}/${name}`;
    if (isDirectory) await setModes(path);
    else await Deno.chmod(path, /\/(?:bin|runtime)$/.test(folder) ? 0o755 : 0o644);
  }
  await Deno.chmod(folder, 0o755);
}

// What is there is removed, so it must be a release, or nothing.
function demandReplaceable(out: string): void {
  let names: string[];
  try {
    names = [...Deno.readDirSync(out)].map(({ name }) => name);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return;
    throw new HeddleError("invalid_input", `Cannot write to ${out}: it is not a folder`);
  }
  if (names.length === 0 || names.includes(RELEASE)) return;
  throw new HeddleError(
    "invalid_input",
    `Cannot write to ${out}: it holds something that is not a release. Remove it, or use --out DIR`,
  );
}

async function replace(out: string, folder: string): Promise<void> {
  await Deno.remove(out, { recursive: true }).catch((error: unknown) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
  await Deno.rename(folder, out);
}
