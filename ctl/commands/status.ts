/** `ctl status`: one screen that says whether the fleet is well, what is not, and what to do. */
import { buildCommand } from "@stricli/core";
import type { GetVersionResponse } from "@heddle/proto/gen/admin";

import { withTransport } from "../client.ts";
import { type CtlContext, LIST_ALIASES, LIST_FLAGS, type ListFlags } from "../command.ts";
import { screenForm, writeScreen } from "../live/screen.ts";
import type { Concern } from "../status/concern.ts";
import { fetchFleet, type FleetStatus, statusOf } from "../status/fleet_status.ts";
import { plural } from "../status/plural.ts";
import { visible } from "../table.ts";
import { show } from "../watch.ts";

/** So that it stays one screen; the lists have the rest. */
const CONCERNS_SHOWN = 12;

export const status = buildCommand({
  docs: { brief: "Is the fleet well, what is not, and what to do" },
  parameters: {
    flags: LIST_FLAGS,
    aliases: LIST_ALIASES,
  },
  async func(this: CtlContext, flags: ListFlags) {
    const form = screenForm(flags);
    await show(this, flags, async () => {
      const fleet = await withTransport(await this.loadContext(flags), fetchFleet);
      const found = statusOf(fleet);
      return (io) =>
        writeScreen(io, form, {
          text: () => formatStatus(fleet.version, found),
          record: () => recordOf(fleet.version, found),
        });
    });
  },
});

function recordOf(version: GetVersionResponse, found: FleetStatus) {
  return {
    well: found.concerns.length === 0,
    cluster: version.cluster,
    control_version: version.version,
    settled: version.settled,
    nodes: found.nodes,
    gpus: found.gpus,
    models: found.models,
    replicas: found.replicas,
    routers: found.routers,
    in_flight: found.inFlight,
    waiting: found.waiting,
    concerns: found.concerns,
  };
}

/** The screen. */
export function formatStatus(version: GetVersionResponse, found: FleetStatus): string {
  const { gpus, models, routers, concerns } = found;
  const unusable = gpus.unusable === 0 ? "" : `, ${gpus.unusable} kept out`;
  const asleep = models.asleep === 0 ? "" : `, ${models.asleep} asleep`;
  const lines = [
    `Cluster   ${visible(version.cluster)}, control ${visible(version.version)}`,
    `Nodes     ${counts(found.nodes) || "none"}`,
    `GPUs      ${gpus.free} of ${gpus.all} free${unusable}`,
    `Models    ${models.serving} of ${models.all} serving${asleep}`,
    `Replicas  ${counts(found.replicas) || "none"}`,
    `Routers   ${routers.all}${
      routers.all === routers.current ? "" : `, ${routers.current} current`
    }`,
    `Requests  ${found.inFlight} in flight, ${found.waiting} waiting`,
    "",
    ...(concerns.length === 0 ? ["All is well."] : attention(concerns)),
  ];
  return lines.map((line) => `${line}\n`).join("");
}

function attention(concerns: readonly Concern[]): readonly string[] {
  const more = concerns.length - CONCERNS_SHOWN;
  return [
    `${plural(concerns.length, "thing")} to look at:`,
    ...concerns.slice(0, CONCERNS_SHOWN).flatMap(({ subject, what, next }) => [
      `  ${visible(`${subject}: ${what}`)}`,
      ...(next === "" ? [] : [`    → ${visible(next)}`]),
    ]),
    ...(more > 0 ? [`  and ${more} more: heddle status --json has them all`] : []),
  ];
}

function counts(byWord: Readonly<Record<string, number>>): string {
  return Object.entries(byWord).map(([word, count]) => `${count} ${word}`).join(", ");
}
