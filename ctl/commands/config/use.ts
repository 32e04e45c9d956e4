/** `ctl config use`: another context is the current one from now on. */
import { buildCommand } from "@stricli/core";
import type { CtlContext } from "../../command.ts";
import { useContext } from "../../config_file.ts";

export const selectContext = buildCommand({
  docs: {
    brief: "Talk to another cluster from now on: writes `current` in the configuration file",
  },
  parameters: {
    flags: {},
    positional: {
      kind: "tuple",
      parameters: [{ brief: "Its name", parse: String, placeholder: "context" }],
    },
  },
  async func(this: CtlContext, _flags: Record<never, never>, name: string) {
    const at = await this.loadConfig();
    await useContext(at, name);
    this.io.out(`${name} is the current context now, in ${at.file}\n`);
  },
});
