/**
 * Releases for tests, built by the task itself into a folder whose surroundings are hostile: a
 * configuration, a package and a registry's settings that nothing must read.
 */
import { equal } from "node:assert/strict";
import { join } from "node:path";
import { ROOT, runCommand } from "./heddle.ts";

/** A built release, removed with its user. */
export interface BuiltRelease extends AsyncDisposable {
  readonly dist: string;
  /** An empty folder that the release's programs may read and write. */
  readonly state: string;
  readonly form: "bundle" | "compile";
  /** Why its programs cannot be run here; undefined when they can. */
  readonly unrunnable: string | undefined;
}

/** The words of `deno compile` when it cannot download its runtime. */
const NO_DOWNLOAD = /error sending request|dns error|client error|error trying to connect/i;

/** Runs `deno task build`; the exit code must be 0. */
export async function build(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<void> {
  const result = await tryBuild(args, env);
  equal(result.code, 0, result.stdout + result.stderr);
}

function tryBuild(args: readonly string[], env: Readonly<Record<string, string>>) {
  return runCommand(Deno.execPath(), [
    "run",
    "--config",
    join(ROOT, "deno.json"),
    "-P=tools",
    "--quiet",
    join(ROOT, "tools/build/main.ts"),
    ...args,
  ], env);
}

/** Builds a release of that form for this machine. */
export async function buildRelease(form: "bundle" | "compile"): Promise<BuiltRelease> {
  const folder = await Deno.realPath(await Deno.makeTempDir({ prefix: "heddle-dist-" }));
  const remove = () => Deno.remove(folder, { recursive: true });
  try {
    for (const name of ["deno.json", "package.json", "deno.lock"]) {
      await Deno.writeTextFile(join(folder, name), "{broken");
    }
    await Deno.writeTextFile(join(folder, ".npmrc"), "=[");
    const state = join(folder, "state");
    await Deno.mkdir(state);
    const dist = join(folder, "releases/here");
    const unrunnable = form === "bundle"
      ? await build(["--out", dist])
      : await compile(["--compile", "--out", dist, "--prefix", dist, "--state", state]);
    return {
      dist,
      state,
      form,
      unrunnable: unrunnable ?? undefined,
      [Symbol.asyncDispose]: remove,
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

/**
 * Builds executables, with a whole Deno in the place of their runtime where that cannot be had:
 * such a one holds all that it should, and starts as Deno. Returns why they cannot be run.
 */
async function compile(args: readonly string[]): Promise<string | undefined> {
  const result = await tryBuild(args, {});
  if (result.code === 0) return undefined;
  if (!NO_DOWNLOAD.test(result.stderr)) equal(result.code, 0, result.stdout + result.stderr);
  await build(args, { DENORT_BIN: await Deno.realPath(Deno.execPath()) });
  return "the runtime of executables cannot be downloaded here";
}
