/**
 * `deno task proto`: checks the wire definitions with buf, then writes proto/gen from them.
 * With `--check` nothing is written: the code is generated beside the repository and compared, so
 * that the gate notices definitions and code that have drifted apart.
 */
import config from "../../deno.json" with { type: "json" };
import { diffFolders } from "../diff_folders.ts";
import { ROOT } from "../repository.ts";
import { run } from "../run.ts";
import { runTool, say } from "../say.ts";

const PROTO = `${ROOT}/proto`;

/** What a changed wire definition is compared with. */
const BASE_BRANCH = "main";

function buf(...args: string[]): Promise<{ ok: boolean; output: string }> {
  // buf.gen.yaml names `deno`: it must be this one, also where npx started it and PATH has none.
  const bin = Deno.execPath().replace(/\/[^/]*$/, "");
  return run(Deno.execPath(), {
    args: ["run", "--quiet", "--no-prompt", "-P=tools", config.imports["@bufbuild/buf"], ...args],
    cwd: PROTO,
    env: { PATH: `${bin}:${Deno.env.get("PATH") ?? "/usr/bin:/bin"}` },
  });
}

/** Throws with buf's own words when the definitions break a lint rule. */
async function lint(): Promise<void> {
  const { ok, output } = await buf("lint");
  if (!ok) throw new Error(`Cannot accept proto/heddle: buf lint says\n${output}`);
}

/**
 * Throws when the definitions would break a peer that speaks those of the last commit on the base
 * branch. Says so and passes where there is none: a checkout without history, or another branch.
 */
async function breaking(): Promise<void> {
  const base = await run("git", {
    args: ["ls-tree", "--name-only", BASE_BRANCH, "proto/buf.yaml"],
    cwd: ROOT,
  });
  if (!base.ok || base.output.trim() === "") {
    say(`proto: breaking changes not checked: no commit on "${BASE_BRANCH}" has proto/`);
    return;
  }
  const { ok, output } = await buf(
    "breaking",
    "--against",
    `${ROOT}/.git#branch=${BASE_BRANCH},subdir=proto`,
  );
  if (ok) return;
  throw new Error(
    `Cannot accept proto/heddle: older peers would misread it\n${output}\n` +
      "Add fields and values with new numbers instead, and reserve the old ones. If no release " +
      "has carried what you break, commit it alone, with --no-verify and that reason.",
  );
}

async function generate(folder: string): Promise<void> {
  const { ok, output } = await buf("generate", "--output", folder);
  if (!ok) throw new Error(`Cannot generate code from proto/heddle: buf says\n${output}`);
}

async function check(): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "heddle-proto-" });
  try {
    await generate(folder);
    const differences = diffFolders(`${PROTO}/gen`, `${folder}/gen`);
    if (differences.length > 0) {
      throw new Error(
        `proto/gen is not what proto/heddle says: ${differences.join(", ")}. Run: deno task proto`,
      );
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

if (import.meta.main) {
  await runTool(async () => {
    await lint();
    await breaking();
    if (Deno.args.includes("--check")) await check();
    else await generate(PROTO);
  });
}
