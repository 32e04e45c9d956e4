/** `ctl weights prefetch` and `ctl weights remove`. */
import { buildCommand } from "@stricli/core";
import { confirm, sayWait } from "../../io.ts";
import {
  COMMON_FLAGS,
  type CommonFlags,
  type CtlContext,
  type SureFlags,
  YES_FLAG,
} from "../../command.ts";
import { callWeights, SLOW_CALL_MS } from "./client.ts";
import { formatBytes } from "./quantity.ts";

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

export const removeWeights = buildCommand({
  docs: {
    brief: "Remove what Heddle fetched on a node",
    fullDescription:
      "FOLDER is as `heddle weights list -o wide` shows it. Only what Heddle itself " +
      "fetched is removed, and not while a shard uses it; a fetch that is under way is ended first.",
  },
  parameters: {
    flags: { ...COMMON_FLAGS, ...YES_FLAG },
    positional: {
      kind: "tuple",
      parameters: [
        { parse: String, brief: "Name of the node", placeholder: "node" },
        { parse: String, brief: "Name of the folder", placeholder: "folder" },
      ],
    },
  },
  async func(this: CtlContext, flags: SureFlags, node: string, folder: string) {
    await confirm(this, flags, `Remove ${folder} on ${node}? Fetching it again takes time.`);
    const { freedBytes } = await callWeights(
      this,
      flags,
      (client) => client.removeWeights({ node, folder }, { timeoutMs: SLOW_CALL_MS }),
    );
    this.io.out(`Removed ${folder} on ${node}: ${formatBytes(freedBytes)} freed\n`);
  },
});
