/** Virtual environments of Python programs that tests use, made once, below ~/.cache. */
import { join } from "node:path";

export interface PythonRecipe {
  /** Interpreters that will do, the preferred one first. */
  readonly pythons: readonly string[];
  /** Pinned, as in "openai==3.57.0". */
  readonly packages: readonly string[];
}

/** Where Debian and pyenv keep interpreters that are not on the path. */
const PYENV = ".pyenv/versions";

/** The environment, made if need be; `why` when this machine cannot have it. */
export async function openPython(
  { pythons, packages }: PythonRecipe,
): Promise<{ readonly bin: string } | { readonly why: string }> {
  const home = Deno.env.get("HOME") ?? "/root";
  const cache = join(Deno.env.get("XDG_CACHE_HOME") ?? join(home, ".cache"), "heddle/python");
  const folder = join(cache, packages.join("-").replaceAll("==", "-"));
  const bin = join(folder, "bin");
  if (await exists(join(folder, "complete"))) return { bin };
  const python = await findPython(pythons, join(home, PYENV));
  if (python === undefined) return { why: `there is none of ${pythons.join(", ")}` };
  await Deno.mkdir(cache, { recursive: true });
  for (
    const argv of [
      [python, "-m", "venv", "--clear", folder],
      [join(bin, "pip"), "install", "--quiet", "--disable-pip-version-check", ...packages],
    ]
  ) {
    const { success, stderr } = await run(argv);
    if (!success) return { why: `${argv.slice(0, 4).join(" ")}: ${stderr.trim().slice(-500)}` };
  }
  await Deno.writeTextFile(join(folder, "complete"), "");
  return { bin };
}

async function findPython(
  names: readonly string[],
  pyenv: string,
): Promise<string | undefined> {
  for (const name of names) {
    const works = (path: string) =>
      run([path, "-c", "import venv, ensurepip"]).then(({ success }) => success, () => false);
    if (await works(name)) return name;
    for (const version of await namesIn(pyenv)) {
      if (!version.startsWith(`${name.replace("python", "")}.`)) continue;
      const path = join(pyenv, version, "bin/python3");
      if (await works(path)) return path;
    }
  }
  return undefined;
}

async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return (await Array.fromAsync(Deno.readDir(folder))).map(({ name }) => name);
  } catch {
    return [];
  }
}

async function run(argv: readonly string[]): Promise<{ success: boolean; stderr: string }> {
  const [command = "", ...args] = argv;
  const output = await new Deno.Command(command, { args, stdin: "null" }).output();
  return { success: output.success, stderr: new TextDecoder().decode(output.stderr) };
}

async function exists(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}
