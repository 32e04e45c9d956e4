/** `ctl version`: what this ctl is, and what control is. */
import { buildCommand } from "@stricli/core";
import { VERSION } from "@heddle/common/version";
import type { GetVersionResponse } from "@heddle/proto/gen/admin";
import { CALL_TIMEOUT_MS } from "../client.ts";
import { call, COMMON_FLAGS, type CommonFlags, type CtlContext } from "../command.ts";
import { visible } from "../table.ts";

interface VersionFlags extends CommonFlags {
  readonly json: boolean;
  readonly client: boolean;
}

export const version = buildCommand({
  docs: { brief: "Show the versions of ctl and of control" },
  parameters: {
    flags: {
      ...COMMON_FLAGS,
      client: { kind: "boolean", default: false, brief: "Only ctl's, without asking control" },
      json: { kind: "boolean", default: false, brief: "As JSON" },
    },
  },
  async func(this: CtlContext, flags: VersionFlags) {
    const control = flags.client ? undefined : await call(
      this,
      flags,
      (client) => client.getVersion({}, { timeoutMs: CALL_TIMEOUT_MS }),
    );
    if (flags.json) {
      const record = {
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
      this.io.out(`${JSON.stringify(record, null, 2)}\n`);
      return;
    }
    this.io.out(`ctl      ${VERSION}\n`);
    if (control !== undefined) this.io.out(`control  ${formatControl(control)}\n`);
  },
});

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
