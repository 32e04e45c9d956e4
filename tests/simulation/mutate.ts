/**
 * Puts a mistake into a copy of control's source and runs the simulation there. The product has no
 * switches for this, and the checkout is not touched.
 */
import { ROOT } from "../../tools/repository.ts";
import type { Mutation } from "./mutations.ts";

export interface Limits {
  /** Most runs until the invariant must have failed. */
  readonly runs: number;
  readonly nodesMax: number;
}

export interface Verdict {
  /** The invariant that the mutation names has failed. */
  readonly caught: boolean;
  readonly detail: string;
}

/** What a simulation needs, and nothing that it does not. */
const COPIED = [
  "deno.json",
  "deno.lock",
  "proto",
  "common",
  "control/core",
  "tests/simulation",
  "tools/say.ts",
];

/** Longest time that one mutation may take, in ms. */
const MUTANT_MS_MAX = 180_000;

/** Throws when an edit does not find its place: the mutation is to be mended with the source. */
export async function tryMutation(mutation: Mutation, limits: Limits): Promise<Verdict> {
  const root = Deno.makeTempDirSync({ prefix: `heddle-${mutation.name}-` });
  try {
    for (const path of COPIED) copy(`${ROOT}/${path}`, `${root}/${path}`);
    for (const edit of mutation.edits) {
      editFile(mutation, `${root}/control/core/${edit.file}`, edit);
    }
    return await runMutant(mutation, root, limits);
  } finally {
    Deno.removeSync(root, { recursive: true });
  }
}

function editFile(
  { name }: Mutation,
  path: string,
  { find, put }: Mutation["edits"][number],
): void {
  const parts = Deno.readTextFileSync(path).split(find);
  if (parts.length !== 2) {
    throw new Error(
      `Mutation ${name}: its place stands ${parts.length - 1} times in ${path}, not once: ${find}`,
    );
  }
  Deno.writeTextFileSync(path, parts.join(put));
}

async function runMutant(mutation: Mutation, root: string, limits: Limits): Promise<Verdict> {
  const { name, invariant } = mutation;
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--quiet",
      "--no-prompt",
      "--no-check",
      "--cached-only",
      "tests/simulation/mutant.ts",
      invariant,
      `${limits.runs}`,
      `${limits.nodesMax}`,
    ],
    cwd: root,
    signal: AbortSignal.timeout(MUTANT_MS_MAX),
  }).output();
  const [said, complaint] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes).trim());
  if (success) return { caught: true, detail: said ?? "" };
  return { caught: false, detail: said || `cannot run ${name}: ${complaint}` };
}

function copy(from: string, to: string): void {
  if (Deno.statSync(from).isFile) {
    Deno.mkdirSync(to.slice(0, to.lastIndexOf("/")), { recursive: true });
    Deno.copyFileSync(from, to);
    return;
  }
  for (const { name } of Deno.readDirSync(from)) copy(`${from}/${name}`, `${to}/${name}`);
}
