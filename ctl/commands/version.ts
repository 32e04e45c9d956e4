/** `ctl version`: what this ctl is, and what control is. */
import { buildCommand } from "@stricli/core";
import { VERSION } from "@heddle/common/version";
import { CALL_TIMEOUT_MS } from "../client.ts";
import { call, COMMON_FLAGS, type CommonFlags, type CtlContext } from "../command.ts";

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
      };
      this.io.out(`${JSON.stringify(record, null, 2)}\n`);
      return;
    }
    this.io.out(`ctl      ${VERSION}\n`);
    if (control !== undefined) {
      const settled = control.settled ? "" : ", still settling";
      this.io.out(
        `control  ${control.version} (cluster ${control.cluster}, term ${control.term}${settled})\n`,
      );
    }
  },
});
