/** Tells engines of this node from what else uses their GPUs. */
import { logger } from "@heddle/common/log";
import { pidsAreTheMachines, strangersAmong } from "../edge/launcher/strangers.ts";
import type { SeeStrangers } from "./gpu_watch.ts";

const log = logger("agent", "discovery");

/** Undefined where drivers and this machine give processes different numbers, as in containers. */
export async function strangerWatch(
  own: { readonly shim: string; readonly stateDirectory: string },
): Promise<SeeStrangers | undefined> {
  if (!await pidsAreTheMachines(own.shim)) {
    log.info(
      "Processes have other numbers here than the driver tells: who uses a held GPU is unknown",
    );
    return undefined;
  }
  let complained = false;
  return async (pids) => {
    try {
      const found = await strangersAmong(own, pids);
      complained = false;
      return found;
    } catch (error) {
      if (!complained) log.warning("Cannot tell whose processes use the GPUs", { error });
      complained = true;
      return undefined;
    }
  };
}
