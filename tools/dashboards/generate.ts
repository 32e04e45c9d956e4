/**
 * `deno task dashboards`: writes the Grafana dashboards that the monitoring role installs. With
 * `--check` nothing is written, and a file that is not what these modules say fails.
 */
import { diffFolders } from "../diff_folders.ts";
import { ROOT } from "../repository.ts";
import { runTool } from "../say.ts";
import { FLEET } from "./fleet.ts";
import { grafanaJson } from "./grafana.ts";
import { MODEL_DASHBOARD } from "./model.ts";
import type { Dashboard } from "./panel.ts";
import { ROUTER } from "./router.ts";

/** Every dashboard; a file is called as its uid. */
export const DASHBOARDS: readonly Dashboard[] = [FLEET, MODEL_DASHBOARD, ROUTER];

const FOLDER = "ansible/roles/monitoring/files/dashboards";

async function write(folder: string): Promise<void> {
  await Deno.mkdir(folder, { recursive: true });
  for (const dashboard of DASHBOARDS) {
    await Deno.writeTextFile(`${folder}/${dashboard.uid}.json`, grafanaJson(dashboard));
  }
}

async function check(): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "heddle-dashboards-" });
  try {
    await write(folder);
    const differences = diffFolders(`${ROOT}/${FOLDER}`, folder);
    if (differences.length > 0) {
      throw new Error(
        `${FOLDER} is not what tools/dashboards says: ${differences.join(", ")}. ` +
          "Run: deno task dashboards",
      );
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

if (import.meta.main) {
  await runTool(() => Deno.args.includes("--check") ? check() : write(`${ROOT}/${FOLDER}`));
}
