/** What becomes of engines that control wants on a node, in words. */
import { formatDurationMs } from "@heddle/common/duration";
import type { NodeView } from "@heddle/proto/gen/admin";
import type { EngineInstall } from "@heddle/proto/gen/engines";
import { decodeInstallState } from "@heddle/proto/install_state";
import { visible } from "../../table.ts";

/** "downloading llama-b1.tar.gz: 62 %", or why it failed and when it is tried again. */
export function installReason(
  { progress, reason, message, retryInMs }: EngineInstall,
): string {
  return [
    progress,
    reason,
    message,
    retryInMs === undefined ? "" : `tried again in ${formatDurationMs(Number(retryInMs))}`,
  ].filter((text) => text !== "").join(": ");
}

/** A line for each engine that a node is to have and has not; empty when there is none. */
export function formatInstalls(nodes: readonly NodeView[]): string {
  const lines = nodes.flatMap(({ name, inventory }) =>
    (inventory?.installs?.installs ?? [])
      .filter(({ wanted, state }) => wanted && decodeInstallState(state) !== "installed")
      .map((install) => {
        const state = decodeInstallState(install.state);
        const why = installReason(install);
        const how = state === "failed" ? "could not be installed" : `is ${state}`;
        const words = `${name}: ${install.name} ${install.version} ${how}`;
        return `  ${visible(why === "" ? words : `${words}: ${why}`)}\n`;
      })
  );
  return lines.length === 0 ? "" : `\nEngines on their way:\n${lines.join("")}`;
}
