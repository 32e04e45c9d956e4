/** `ctl version`: what this ctl is, and what control is. */
import { buildCommand } from "@stricli/core";
import { VERSION } from "@heddle/common/version";
import type { GetVersionResponse } from "@heddle/proto/gen/admin";
import { CALL_TIMEOUT_MS } from "../client.ts";
import { call, type CtlContext, FORM_ALIASES, SCREEN_FLAGS, type ScreenFlags } from "../command.ts";
import { screenForm, writeScreen } from "../live/screen.ts";
import { visible } from "../table.ts";

interface VersionFlags extends ScreenFlags {
  readonly client: boolean;
}

export const version = buildCommand({
  docs: { brief: "Show the versions of ctl and of control" },
  parameters: {
    flags: {
      ...SCREEN_FLAGS,
      client: { kind: "boolean", default: false, brief: "Only ctl's, without asking control" },
    },
    aliases: FORM_ALIASES,
  },
  async func(this: CtlContext, flags: VersionFlags) {
    const form = screenForm(flags);
    const control = flags.client ? undefined : await call(
      this,
      flags,
      (client) => client.getVersion({}, { timeoutMs: CALL_TIMEOUT_MS }),
    );
    writeScreen(this.io, form, {
      text: () =>
        `ctl      ${VERSION}\n` +
        (control === undefined ? "" : `control  ${formatControl(control)}\n`),
      record: () => recordOf(control),
    });
  },
});

function recordOf(control: GetVersionResponse | undefined) {
  return {
    ctl: VERSION,
    control: control?.version ?? null,
    cluster: control?.cluster ?? null,
    term: control === undefined ? null : Number(control.term),
    settled: control?.settled ?? null,
    name: control?.name ?? null,
    leading: control?.leading ?? null,
    leader: control?.leader ?? null,
    unsure: control?.unsure ?? null,
  };
}

/** Its version, and whether it leads. */
export function formatControl(control: GetVersionResponse): string {
  const { version, cluster, name, leading, term, settled, leader, leaderAddress, unsure } = control;
  const who = name === "" ? "" : ` "${name}"`;
  const at = leaderAddress === "" ? "" : ` at ${leaderAddress}`;
  const stands = leader === "" ? "stands by" : `stands by: control "${leader}"${at} leads`;
  const parts = [
    `cluster ${cluster}`,
    // A control of before did not say whether it leads: it always did.
    ...(leading || name === ""
      ? [`term ${term}`, ...(settled ? [] : ["still settling"])]
      : [stands]),
    ...(unsure === "" ? [] : [unsure]),
  ];
  return visible(`${version}${who} (${parts.join(", ")})`);
}
