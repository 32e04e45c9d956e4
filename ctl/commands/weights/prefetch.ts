/** `ctl weights prefetch`: fetching before a replica needs it. */
import { buildCommand } from "@stricli/core";
import { sayWait } from "../../io.ts";
import { COMMON_FLAGS, type CommonFlags, type CtlContext } from "../../command.ts";
import { callWeights, SLOW_CALL_MS } from "./client.ts";

interface PrefetchFlags extends CommonFlags {
  readonly nodes?: string;
}

export const prefetchWeights = buildCommand({
  docs: {
    brief: "Have nodes fetch a model's weights before a replica needs them",
    fullDescription:
      "Without --nodes every node that could run a profile of the model fetches them. " +
      "What is there already is not fetched again.",
  },
  parameters: {
    flags: {
      ...COMMON_FLAGS,
      nodes: {
        kind: "parsed",
        parse: String,
        optional: true,
        placeholder: "a,b",
        brief: "Only these nodes, separated by commas",
      },
    },
    positional: {
      kind: "tuple",
      parameters: [{ parse: String, brief: "Name or alias of the model", placeholder: "model" }],
    },
  },
  async func(this: CtlContext, flags: PrefetchFlags, model: string) {
    const nodes = flags.nodes?.split(",").filter((name) => name !== "") ?? [];
    sayWait(this.io, "Nodes ask the source what there is to fetch; that may take minutes");
    const answer = await callWeights(
      this,
      flags,
      (client) => client.prefetchWeights({ model, nodes }, { timeoutMs: SLOW_CALL_MS }),
    );
    for (const { node, outcome, message } of answer.nodes) {
      this.io.out(`${node}: ${outcome}${message === "" ? "" : `: ${message}`}\n`);
    }
    const refused = answer.nodes.filter(({ message }) => message !== "");
    if (refused.length > 0) this.fail();
    if (refused.length < answer.nodes.length) {
      this.io.out("See how far they are with: heddle weights\n");
    }
  },
});
