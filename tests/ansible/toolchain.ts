/**
 * Ansible in virtual environments of its own, one for each version that the playbooks are held to:
 * the oldest that they run on, and the newest, which has the linters. Made once, below ~/.cache.
 */
import { openPython, type PythonRecipe } from "../python_environment.ts";

export interface Toolchain {
  /** As in "2.14". */
  readonly version: string;
  /** Folder of ansible-playbook and its sisters. */
  readonly bin: string;
}

interface Recipe extends PythonRecipe {
  readonly version: string;
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

/** The environment, made if need be; `why` when this machine cannot have it. */
export async function openToolchain(
  recipe: Recipe,
): Promise<Toolchain | { readonly why: string }> {
  const python = await openPython(recipe);
  return "why" in python ? python : { version: recipe.version, bin: python.bin };
}
