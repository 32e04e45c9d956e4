/**
 * `deno task launchers`: writes the repository's bin/ from the template that a release's launchers
 * come from too. With `--check` it only says which of them differ.
 */
import { ROOT } from "../repository.ts";
import { runTool, say } from "../say.ts";
import { launcherText } from "./launcher.ts";
import { readGrants } from "./permission_set.ts";
import { PROGRAMS } from "./program.ts";

/** Launchers of the repository that are not what the template makes of deno.json. */
export async function staleLaunchers(root: string): Promise<Map<string, string>> {
  const config = await Deno.readTextFile(`${root}/deno.json`);
  const stale = new Map<string, string>();
  for (const program of PROGRAMS) {
    const path = `bin/${program.name}`;
    const text = launcherText(program, readGrants(config, program.room), "repository");
    const present = await Deno.readTextFile(`${root}/${path}`).catch(() => undefined);
    if (present !== text) stale.set(path, text);
  }
  return stale;
}

if (import.meta.main) {
  await runTool(async () => {
    const stale = await staleLaunchers(ROOT);
    if (Deno.args.includes("--check") && stale.size > 0) {
      throw new Error(
        `Not what tools/build/launcher.ts makes of deno.json: ${[...stale.keys()].join(", ")}`,
      );
    }
    for (const [path, text] of stale) {
      await Deno.writeTextFile(`${ROOT}/${path}`, text);
      await Deno.chmod(`${ROOT}/${path}`, 0o755);
      say(`Wrote ${path}`);
    }
  });
}
