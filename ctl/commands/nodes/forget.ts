/** `ctl nodes forget`: gives up a lost node that will not come back. */
import { buildCommand } from "@stricli/core";
import { confirm } from "../../io.ts";
import { CALL_TIMEOUT_MS } from "../../client.ts";
import { call, COMMON_FLAGS, type CtlContext, type SureFlags, YES_FLAG } from "../../command.ts";

export const forget = buildCommand({
  docs: {
    brief: "Drop what is remembered of a lost node that will not come back",
    fullDescription:
      "Its cordon, drain and labels go with it. Should its agent come back all the " +
      "same, it registers as a new node, and what runs there is found again.",
  },
  parameters: {
    flags: { ...COMMON_FLAGS, ...YES_FLAG },
    positional: {
      kind: "tuple",
      parameters: [{ parse: String, brief: "Name of the node", placeholder: "node" }],
    },
  },
  async func(this: CtlContext, flags: SureFlags, node: string) {
    await confirm(this, flags, `Forget node ${node}? What it runs counts as gone.`);
    const { replicaIds } = await call(
      this,
      flags,
      (client) => client.forgetNode({ node }, { timeoutMs: CALL_TIMEOUT_MS }),
    );
    const gone = replicaIds.length === 0 ? "" : `; gone with it: ${replicaIds.join(", ")}`;
    this.io.out(`${node} is forgotten${gone}\n`);
  },
});
