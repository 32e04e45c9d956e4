/** Every scenario by its name, in the order in which `all` runs them. */
import type { Scenario } from "./scenario.ts";
import { backup } from "./scenarios/backup.ts";
import { badRelease } from "./scenarios/upgrades/bad_release.ts";
import { certificates } from "./scenarios/certificates.ts";
import { controls } from "./scenarios/controls.ts";
import { engines } from "./scenarios/engines.ts";
import { kills } from "./scenarios/kills.ts";
import { nodeLoss } from "./scenarios/node_loss.ts";
import { nodes } from "./scenarios/nodes.ts";
import { systemdLauncher } from "./scenarios/systemd_launcher.ts";
import { onboard } from "./scenarios/onboard.ts";
import { preflight } from "./scenarios/preflight.ts";
import { rentedBox } from "./scenarios/attached/rented_box.ts";
import { removeNode } from "./scenarios/remove_node.ts";
import { interrupted } from "./scenarios/upgrades/interrupted.ts";
import { upgrade } from "./scenarios/upgrades/upgrade.ts";
import { upgradeEngines } from "./scenarios/upgrades/upgrade_engines.ts";
import { weights } from "./scenarios/weights.ts";

export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  nodes,
  systemd_launcher: systemdLauncher,
  weights,
  engines,
  rented_box: rentedBox,
  onboard,
  preflight,
  upgrade,
  bad_release: badRelease,
  interrupted,
  remove_node: removeNode,
  node_loss: nodeLoss,
  kills,
  controls,
  certificates,
  backup,
  upgrade_engines: upgradeEngines,
};
