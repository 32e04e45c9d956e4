/**
 * Ansible in virtual environments of its own, one for each version that the playbooks are held to:
 * the oldest that they run on, and the newest, which has the linters. Made once, below ~/.cache.
 */
import { join } from "node:path";

export interface Toolchain {
  /** As in "2.14". */
  readonly version: string;
  /** Folder of ansible-playbook and its sisters. */
  readonly bin: string;
}

interface Recipe {
  readonly version: string;
  /** Interpreters that will do, the preferred one first. */
  readonly pythons: readonly string[];
  readonly packages: readonly string[];
}

/** ansible-core 2.14 wants Python 3.9 to 3.11 on the controller. */
export const OLDEST: Recipe = {
  version: "2.14",
  pythons: ["python3.11", "python3.10", "python3.9"],
  packages: ["ansible-core==2.14.18"],
};

/** 2.21 and its linters want 3.12 or newer. */
export const NEWEST: Recipe = {
  version: "2.21",
  pythons: ["python3.13", "python3.12", "python3.14"],
  packages: ["ansible-core==2.21.5", "ansible-lint==26.10.1", "yamllint==1.38.0"],
};

/** Where Debian and pyenv keep interpreters that are not on the path. */
const PYENV = ".pyenv/versions";

/** The environment, made if need be; undefined with `why` when this machine cannot have it. */
export async function openToolchain(
  recipe: Recipe,
): Promise<Toolchain | { readonly why: string }> {
  const home = Deno.env.get("HOME") ?? "/root";
  const cache = Deno.env.get("XDG_CACHE_HOME") ?? join(home, ".cache");
  const pinned = recipe.packages.join("-").replaceAll("==", "-");
  const folder = join(cache, "heddle/ansible", pinned);
  const toolchain = { version: recipe.version, bin: join(folder, "bin") };
  if (await exists(join(folder, "complete"))) return toolchain;
  const python = await findPython(recipe.pythons, join(home, PYENV));
  if (python === undefined) return { why: `there is none of ${recipe.pythons.join(", ")}` };
  await Deno.mkdir(join(cache, "heddle/ansible"), { recursive: true });
  for (
    const argv of [
      [python, "-m", "venv", "--clear", folder],
      [join(folder, "bin/pip"), "install", "--quiet", "--disable-pip-version-check"]
        .concat(recipe.packages),
    ]
  ) {
    const { success, stderr } = await run(argv);
    if (!success) return { why: `${argv.slice(0, 4).join(" ")}: ${stderr.trim().slice(-500)}` };
  }
  await Deno.writeTextFile(join(folder, "complete"), "");
  return toolchain;
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
