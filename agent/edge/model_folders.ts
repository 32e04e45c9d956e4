/** Makes folders of weights that are not there, where this agent may. */
import { logger } from "@heddle/common/log";
import { reasonOf } from "./reason_of.ts";

const log = logger("agent");

/**
 * Each folder exists afterwards, or the inventory says of it that it is missing and how to make it: an
 * agent in production may not write there, so that it can lose nobody's weights. Never rejects.
 */
export async function makeModelFolders(folders: readonly string[]): Promise<void> {
  for (const path of folders) {
    const { state } = await Deno.permissions.query({ name: "write", path });
    if (state !== "granted") continue;
    try {
      await Deno.mkdir(path, { recursive: true, mode: 0o750 });
    } catch (error) {
      log.warning(`Cannot make ${path}, one of model_dirs: ${reasonOf(error)}`);
    }
  }
}
